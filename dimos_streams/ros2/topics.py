"""The table of topics, resolved: each stream's topic, its type on ROS's side, its quality and its conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dimos_streams.errors import UserError, suggest
from dimos_streams.messages import registry
from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs import Header
from dimos_streams.module import ConfigFault
from dimos_streams.ros2.cdr import decode, encode
from dimos_streams.ros2.config import QUALITIES, Ros2RobotConfig, TopicSetting
from dimos_streams.ros2.conversions import USUAL, incoming, outgoing
from dimos_streams.ros2.layout import RosStruct, known_struct, struct_of
from dimos_streams.ros2.names import absolute, dds_topic, dds_type, lcm_type
from dimos_streams.ros2.wire import DEFAULT, SENSOR, Quality
from dimos_streams.streams import StreamSpec

_MANY_WRITERS = 100
"""The depth of what is read latched: each node of a robot has a writer of its own of ``/tf_static``, and all of them
send what they have kept at once."""


@dataclass(frozen=True, slots=True)
class Route:
    """One stream and its topic."""

    stream: StreamSpec
    topic: str
    """The topic as ROS calls it, absolute."""
    struct: RosStruct
    """The type on ROS's side."""
    quality: Quality

    @property
    def dds_topic(self) -> str:
        """The topic as DDS calls it."""
        return dds_topic(self.topic)

    @property
    def dds_type(self) -> str:
        """The type as DDS calls it."""
        return dds_type(self.struct.name)

    @property
    def from_ros(self) -> bool:
        """True if the robot publishes it, and the module passes it on."""
        return self.stream.direction == "out"

    def read(self, data: bytes) -> Message:
        """Return the stream's message for what ROS has sent. Raises ``MessageError``."""
        convert = incoming(_message(self.struct), self.stream.message)
        assert convert is not None
        return convert(decode(self.struct, data))

    def write(self, message: Message, header: Header) -> bytes:
        """Return the bytes for ROS of a stream's message. Raises ``MessageError``."""
        convert = outgoing(self.stream.message, _message(self.struct))
        assert convert is not None
        return encode(self.struct, convert(message, header))


def routes_of(config: Ros2RobotConfig, streams: Mapping[str, StreamSpec]) -> list[Route]:
    """The routes of a table. Raises ``UserError`` with the first of its faults."""
    for fault in topic_faults(config, streams):
        raise UserError(f"{'.'.join(fault.path)}: {fault.text}")
    return [_route(streams[name], row, config.namespace) for name, row in config.topics.items()]


def topic_faults(config: Ros2RobotConfig, streams: Mapping[str, StreamSpec]) -> Iterator[ConfigFault]:
    """Yield the faults of a table: streams that are not there, types that are not known or can't be converted."""
    for name, row in config.topics.items():
        if name not in streams:
            known = suggest(name, streams) or f" (streams: {', '.join(streams)})"
            yield ConfigFault(("topics", name), f"there is no stream {name!r}{known}")
            continue
        try:
            _route(streams[name], row, config.namespace)
        except UserError as error:
            yield ConfigFault(("topics", name), str(error))
    for name in config.needed:
        if name not in config.topics or streams[name].direction != "out":
            from_ros = [other for other in config.topics if other in streams and streams[other].direction == "out"]
            text = f"{name!r} does not come from ROS by the table of topics (that do: {', '.join(from_ros)})"
            yield ConfigFault(("needed",), text)


def _route(stream: StreamSpec, row: TopicSetting, namespace: str) -> Route:
    from_ros = stream.direction == "out"
    struct = struct_of(USUAL.get(stream.message, stream.message))
    if row.type is not None:
        found = known_struct(row.type)
        if found is None:
            raise UserError(f"{row.type!r} is no known type{registry.hint(lcm_type(row.type))}")
        struct = found
    theirs, ours = _message(struct), stream.message
    convert: Callable[..., Any] | None = incoming(theirs, ours) if from_ros else outgoing(ours, theirs)
    if convert is None:
        raise UserError(f"{struct.name} can't be the type of stream {stream.name!r}, which is {ours.msg_name}")
    quality = QUALITIES[row.qos] if row.qos is not None else SENSOR if from_ros else DEFAULT
    if from_ros and quality.latched:
        quality = replace(quality, depth=_MANY_WRITERS)
    return Route(stream, absolute(row.topic, namespace), struct, quality)


def _message(struct: RosStruct) -> type[Message]:
    assert struct.message is not None
    return struct.message
