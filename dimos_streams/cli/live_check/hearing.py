"""A listener that hears a bus for a while, and keeps what is worth knowing about each topic."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.cli.live_check.doubts import doubts
from dimos_streams.cli.live_check.needs import Need
from dimos_streams.cli.system.bus_traffic import Traffic
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import decode, split_channel
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.messages.image import ENCODINGS
from dimos_streams.messages.scan import why_blind
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.messages.std_msgs import Header
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.time import utime_of
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.tool_stream.liveness.heartbeat import ENDED
from dimos_streams.tool_stream.protocol.channels import STATUS

_LOOKS_HZ = 50.0
"""The rate of a channel's messages above which not every one is decoded."""
_LOOKS_AT_ONCE = 5
"""The messages in a row that are decoded at any rate, lest those that come just after others are never seen."""
_STEP_S = 0.1
_MAX_NAMES = 2000
_MAX_CONTENTS = 4
_LONGEST = 200


@dataclass(slots=True)
class HeardChannel:
    """The messages that came on one channel."""

    traffic: Traffic
    readable: int = 0
    skipped: int = 0
    """The number of messages that could not be read, or that inputs' own tests refuse."""
    unreadable: str = ""
    """The reason why the newest skipped message was; empty if none was."""
    doubts: dict[str, None] = field(default_factory=dict)
    """What readable messages say that is hardly so."""
    unstamped: int = 0
    stamps: set[int] = field(default_factory=set)
    """The different stamps, in µs."""
    blind: str = ""
    """The reason why the newest scan of a lidar says nothing; empty if it says something."""
    delays: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_NAMES))
    """The delays from messages' stamps until they came, in seconds, by the clock of this machine."""
    contents: dict[str, None] = field(default_factory=dict)
    """The frames, encodings and sizes of messages."""
    faults: dict[str, None] = field(default_factory=dict)
    """The faults that make readable messages useless."""
    detections: int = 0
    labelled: int = 0
    """The number of detections that have a label."""
    looks: Allowance = field(default_factory=lambda: Allowance(_LOOKS_HZ, _LOOKS_AT_ONCE))

    def skip(self, why: str) -> None:
        """Note a message that no input takes."""
        self.skipped += 1
        self.unreadable = why

    def note(self, message: Message, *, from_outside: bool) -> None:
        """Note a message that could be read."""
        self.readable += 1
        for stamp in _stamps(message):
            if stamp <= 0:
                self.unstamped += 1
                continue
            self.delays.append((clock.utime() - stamp) / 1e6)
            if len(self.stamps) < _MAX_NAMES:
                self.stamps.add(stamp)
        _keep(self.contents, _contents(message))
        _keep(self.faults, _faults(message))
        if len(self.doubts) < _MAX_CONTENTS:
            _keep(self.doubts, doubts(message, from_outside=from_outside))
        if isinstance(message, LaserScan):
            self.blind = why_blind(message)
        if isinstance(message, Detection2DArray):
            self.detections += len(message.detections)
            self.labelled += sum(bool(each.results) for each in message.detections)


class Listener:
    """A handler of all messages of a bus. What it keeps is bounded."""

    def __init__(self, needs: Iterable[Need], modules: Collection[str]) -> None:
        """``needs`` are the topics that are looked into; ``modules`` those whose life matters."""
        self._needs, self._modules = {need.topic: need for need in needs}, modules
        self._wanted = {topic: need.types for topic, need in self._needs.items()}
        self.channels: dict[str, HeardChannel] = {}
        """The messages by channel, also on channels that nobody wants."""
        self.alive: set[str] = set()
        """The modules whose heartbeats were heard, without those that have ended since."""
        self.began_at = self.ended_at = 0.0

    def on_message(self, channel: str, data: bytes) -> None:
        """Take a message; a handler for a bus."""
        now = clock.monotonic()
        if channel == STATUS:
            self._take_heartbeat(data)
            return
        topic, type_name = split_channel(channel)
        heard = self.channels.get(channel)
        if heard is None:
            if len(self.channels) >= _MAX_NAMES and type_name not in self._wanted.get(topic, {}):
                return
            heard = self.channels[channel] = HeardChannel(Traffic(channel))
        heard.traffic.add(len(data), now)
        cls = self._wanted.get(topic, {}).get(type_name)
        if cls is not None and heard.looks.take():
            self._look(heard, cls, data)

    def of_topic(self, topic: str) -> dict[str, HeardChannel]:
        """Return what came on a topic, by the names of the types."""
        split = ((split_channel(channel), heard) for channel, heard in self.channels.items())
        return {type_name: heard for (name, type_name), heard in split if name == topic}

    def _look(self, heard: HeardChannel, cls: type[Message], data: bytes) -> None:
        need = self._needs[heard.traffic.topic]
        try:
            message = decode(cls, data, heard.traffic.channel)
        except MessageError as error:
            heard.skip(error.why)
            return
        if fault := need.fault(message):
            heard.skip(fault)
        else:
            heard.note(message, from_outside=not need.senders)

    def _take_heartbeat(self, data: bytes) -> None:
        try:
            status = decode(ModuleStatus, data, STATUS)
        except MessageError:
            return  # it tells of no module
        if status.health == ENDED:
            self.alive.discard(status.module)
        elif status.module in self._modules:
            self.alive.add(status.module)


async def listen(
    bus: Bus,
    listener: Listener,
    seconds: float,
    advance: Callable[[float], None] = lambda done: None,
) -> None:
    """Listen to an open bus for ``seconds``; ``advance`` is told how many of them have passed."""
    subscription = bus.subscribe_all(listener.on_message)
    began = listener.began_at = clock.monotonic()
    try:
        while (left := began + seconds - clock.monotonic()) > 0:
            await asyncio.sleep(min(_STEP_S, left))
            advance(clock.monotonic() - began)
    finally:
        subscription.close()
    listener.ended_at = clock.monotonic()


def _keep(texts: dict[str, None], more: Iterable[str]) -> None:
    for text in more:
        if len(texts) < _MAX_CONTENTS:
            texts[shortened(text, _LONGEST)] = None


def _headers(message: Message) -> Iterator[Header]:
    if isinstance(message, TFMessage):
        yield from (transform.header for transform in message.transforms)
    elif isinstance(header := getattr(message, "header", None), Header):
        yield header


def _stamps(message: Message) -> Iterator[int]:
    """Yield the times at which what a message says was so, in µs; none if its type does not say."""
    if isinstance(utime := getattr(message, "utime", None), int):
        yield utime
    yield from map(utime_of, _headers(message))


def _contents(message: Message) -> Iterator[str]:
    if isinstance(message, Image):
        yield f"{message.encoding} {message.width}x{message.height}"
    if isinstance(message, TFMessage):
        yield from (_frames(each.header, each.child_frame_id) for each in message.transforms)
        return
    for header in _headers(message):
        if frames := _frames(header, str(getattr(message, "child_frame_id", ""))):
            yield frames


def _frames(header: Header, child: str) -> str:
    return f"{header.frame_id} > {child}" if child else header.frame_id


def _faults(message: Message) -> Iterator[str]:
    if isinstance(message, Image) and message.encoding not in ENCODINGS:
        yield f"its encoding {message.encoding!r} can't be read (known: {', '.join(ENCODINGS)})"
