"""The kind of a topic, which decides what is shown of it and follows from the type of its messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dimos_streams.common.names import namespace_of_topic
from dimos_streams.messages.codec import split_channel

TopicKind = Literal[
    "picture",
    "detections",
    "scan",
    "odometry",
    "velocity",
    "path",
    "grid",
    "frames",
    "battery",
    "number",
    "other",
]
_KINDS: dict[str, TopicKind] = {
    "sensor_msgs.Image": "picture",
    "sensor_msgs.CompressedImage": "picture",
    "vision_msgs.Detection2DArray": "detections",
    "sensor_msgs.LaserScan": "scan",
    "nav_msgs.Odometry": "odometry",
    "geometry_msgs.Twist": "velocity",
    "geometry_msgs.TwistStamped": "velocity",
    "nav_msgs.Path": "path",
    "nav_msgs.OccupancyGrid": "grid",
    "tf2_msgs.TFMessage": "frames",
    "sensor_msgs.BatteryState": "battery",
    **dict.fromkeys((f"std_msgs.Float{bits}" for bits in (32, 64)), "number"),
    **dict.fromkeys((f"std_msgs.{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)), "number"),
}


def kind_of(type_name: str) -> TopicKind:
    """The kind of a message type: ``"picture"`` for ``"sensor_msgs.Image"``, ``"other"`` for unknown types."""
    return _KINDS.get(type_name, "other")


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic that can be watched."""

    topic: str
    """Its name, ``"/robot1/odom"``. Where a topic has messages of several types, those after the first are named by
    their whole channel, ``"/robot1/odom#geometry_msgs.PoseStamped"``."""
    channel: str
    type: str
    kind: TopicKind
    robot: str
    """The namespace of the robot that it belongs to, empty for none."""

    @property
    def is_bulky(self) -> bool:
        """True if its messages may be so large that nobody takes them off the bus only to count them."""
        return self.kind in ("picture", "grid", "other")


def topic_infos(channels: Iterable[str], namespaces: Iterable[str]) -> list[TopicInfo]:
    """The topics of channels such as ``"/odom#nav_msgs.Odometry"``, by name; a channel without a type is left out.

    A topic belongs to the robot whose namespace (``"robot1"``) its name begins with, of several the longest.
    """
    known = set(namespaces)
    found: dict[str, TopicInfo] = {}
    for channel in sorted(set(channels), key=_best_first):
        topic, type_name = split_channel(channel)
        if topic and type_name:
            name = channel if topic in found else topic
            found[name] = TopicInfo(name, channel, type_name, kind_of(type_name), namespace_of_topic(topic, known))
    return [found[name] for name in sorted(found)]


def _best_first(channel: str) -> tuple[str, bool, str]:
    topic, type_name = split_channel(channel)
    return topic, kind_of(type_name) == "other", type_name
