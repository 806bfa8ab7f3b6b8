"""One client's view: which topics it watches, and what it is sent next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic_core import to_json

from dimos_streams import clock
from dimos_streams.bridge.live.frames import Fault
from dimos_streams.bridge.live.requests import TopicRequest
from dimos_streams.bridge.live.topic import LiveTopic
from dimos_streams.common.secrets import redacted_data
from dimos_streams.errors import UserError

_MAX_TEXTS = 64
"""Maximum number of texts that wait to be sent; beyond it the oldest are dropped."""
_FRAME_COSTS = 16 * 1024
"""Bytes that a frame counts in addition to its size: sending a small one takes time, too."""
_SHORTEST_S = 1 / 120
"""Minimum time, in seconds, between two frames of a topic, whatever a client asks for."""
_FAULT_EVERY_S = 1.0
"""Interval, in seconds, at which the client of a topic that can't be shown is told so."""


def text(type: str, **fields: Any) -> str:
    """A message that is no frame."""
    return to_json({"type": type, **fields}).decode()


def error(why: str, **fields: Any) -> str:
    """A message that something is not possible, without secrets: it often names what was asked for."""
    return text("error", **redacted_data({"text": why, **fields}))


class Source(Protocol):
    """The source of a viewer's topics."""

    @property
    def bytes_per_s(self) -> float:
        """The share of one viewer in what is sent."""

    def watchable(self, name: str) -> LiveTopic:
        """The topic of that name. Raises ``UserError`` if it is not there, or can't be shown."""

    def on_sent(self) -> None:
        """Note that a viewer has been given a frame."""

    def forget(self, viewer: Viewer) -> None:
        """Note that the viewer is closed."""


@dataclass(slots=True, eq=False)
class _Watched:
    """A topic as one client watches it."""

    topic: LiveTopic
    interval_s: float
    shown: int
    """The number of the newest message that the client was sent, or that it was told of."""
    due: float
    """Time at which the next frame may be sent, on the loop's clock."""
    unseen: int = 0
    """Bytes of the frame that was sent and not acknowledged yet; 0 if there is none."""
    dropped: int = 0


class Viewer:
    """The messages that one connection is to be sent. Use from the loop only; close it when done.

    Of each topic at most one frame is on its way: the next one, the newest there is by then, is sent when the client
    has said that it has seen it. So nothing queues up for a client that is slow.
    """

    def __init__(self, source: Source, cut: Callable[[], None]) -> None:
        """``cut`` ends its connection without waiting for the client."""
        self.closed = False
        self.unseen = 0
        """Bytes of frames that the client was sent and has not acknowledged."""
        self.unseen_since = float("inf")
        """Time since which it has acknowledged none of the frames sent, on the loop's clock; infinite if none is."""
        self._source = source
        self._cut = cut
        self._watched: dict[str, _Watched] = {}
        """The watched topics by name, in the order of their turns."""
        self._texts: deque[str] = deque(maxlen=_MAX_TEXTS)
        self._free_at = 0.0
        """Time from which on it may be sent a frame without exceeding its share, on the loop's clock."""
        self._update = asyncio.Event()

    def watch(self, wanted: Mapping[str, TopicRequest]) -> None:
        """Watch these topics, and no others. Those that were watched before go on as they are.

        The client is told of those that are not there. Raises ``BusError`` if the bus refuses one; those before it
        are watched then.
        """
        before, self._watched = self._watched, {}
        try:
            for name, request in wanted.items():
                self._watch(name, request, before)
        finally:
            for gone in before.values():
                self._settle(gone)
                gone.topic.unwatch(self)
            self._update.set()

    def _watch(self, name: str, request: TopicRequest, before: dict[str, _Watched]) -> None:
        """Watch a topic; one that was watched before goes on, and is taken out of ``before``."""
        try:
            topic = self._source.watchable(name)
        except UserError as problem:
            self.say(error(str(problem), topic=name))
            return
        interval_s = max(_SHORTEST_S, 1 / request.max_hz if request.max_hz else 0.0)
        watched = before.pop(name, None)
        if watched is None:
            watched = _Watched(topic, interval_s, topic.number - topic.has_newest, clock.monotonic())
            topic.watch(self)
        watched.interval_s = interval_s
        self._watched[name] = watched

    def see(self, name: str) -> None:
        """Note that the client has seen the newest frame of a topic; a topic that it does not watch is ignored."""
        watched = self._watched.get(name)
        if watched is not None:
            self._settle(watched)
            self._update.set()

    def say(self, message: str) -> None:
        """Have a ``text`` sent, before any frame."""
        self._texts.append(message)
        self._update.set()

    def on_message(self, topic: LiveTopic) -> None:
        """See ``TopicWatcher``."""
        watched = self._watched.get(topic.info.topic)
        if watched is not None and not watched.unseen:
            self._update.set()

    async def next(self) -> str | bytes | None:
        """Wait for the next message to be sent. Returns None when the viewer was closed."""
        while not self.closed:
            self._update.clear()
            if self._texts:
                return self._texts.popleft()
            frame, again_at = self._next_frame(clock.monotonic())
            if frame is not None:
                return frame
            await self._wait(again_at)
        return None

    def cut(self) -> None:
        """End it and its connection at once."""
        self.close()
        self._cut()

    def close(self) -> None:
        """End it: whoever waits in ``next`` gets None. Twice is fine."""
        if not self.closed:
            self.closed = True
            self.watch({})
            self._texts.clear()
            self._source.forget(self)

    def _next_frame(self, now: float) -> tuple[bytes | None, float]:
        """A frame that is to be sent now, or None, and the time to look again if nothing happens before."""
        if now < self._free_at:
            return None, self._free_at
        again_at = float("inf")
        for name, watched in self._watched.items():
            if watched.unseen:
                continue
            if now < watched.due:
                again_at = min(again_at, watched.due)
                continue
            frame = self._frame_of(watched, now)
            if self.closed:  # this frame was too much, and it was this viewer that was cut off for it
                return None, again_at
            if frame is not None:
                self._watched[name] = self._watched.pop(name)  # the others have their turn first
                return frame, again_at
        return None, again_at

    def _frame_of(self, watched: _Watched, now: float) -> bytes | None:
        made = watched.topic.newer_than(watched.shown)
        if made is None:
            return None
        passed, watched.shown = made.number - watched.shown - 1, made.number
        watched.dropped += passed
        watched.due = max(watched.due + watched.interval_s, now)
        if isinstance(made, Fault):
            watched.due = now + _FAULT_EVERY_S
            self.say(error(made.text, topic=watched.topic.info.topic))
            return None
        frame = made.encoded(watched.dropped)
        self._free_at = max(now, self._free_at) + (len(frame) + _FRAME_COSTS) / self._source.bytes_per_s
        self.unseen_since = min(self.unseen_since, now)
        watched.unseen = len(frame)
        self.unseen += watched.unseen
        self._source.on_sent()
        return frame

    def _settle(self, watched: _Watched) -> None:
        """Note that nothing of a topic is on its way any more."""
        self.unseen -= watched.unseen
        watched.unseen = 0
        self.unseen_since = clock.monotonic() if self.unseen else float("inf")

    async def _wait(self, again_at: float) -> None:
        """Wait until something happens, or it is time to look again."""
        timer = None
        if again_at < float("inf"):
            loop = asyncio.get_running_loop()
            timer = loop.call_later(max(0.0, again_at - clock.monotonic()), self._update.set)
        try:
            await self._update.wait()
        finally:
            if timer is not None:
                timer.cancel()
