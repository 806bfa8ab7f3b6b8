"""The live topics of a run: each message is taken and made ready once, however many viewers there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dimos_streams import clock
from dimos_streams.bridge.live.frames import Fault, LiveFrame
from dimos_streams.bridge.live.kinds import TopicInfo
from dimos_streams.bridge.live.topic import LiveTopic
from dimos_streams.bridge.live.viewer import Viewer, text
from dimos_streams.bus import Bus
from dimos_streams.common.process.threads import in_executor
from dimos_streams.common.tasks import report_defect
from dimos_streams.errors import UserError, suggest
from dimos_streams.messages import registry

MAX_UNSEEN = 64 * 1024 * 1024
"""Maximum bytes that all viewers together were sent and have not acknowledged."""
_BYTES_PER_S = 64 * 1024 * 1024
"""Bytes per second that are sent to all viewers together, equal shares to each."""
_RATES_EVERY_S = 1.0


class LiveTopics:
    """The live topics of a run. Nothing is subscribed to while nobody looks. Use from the bus's loop only."""

    def __init__(self, bus: Bus, topics: Iterable[TopicInfo], *, utime: Callable[[], int] = clock.utime) -> None:
        """``utime`` is the run's clock, µs since the Unix epoch."""
        self._topics = {info.topic: LiveTopic(bus, info, utime, self._make) for info in topics}
        self._viewers: dict[Viewer, None] = {}
        self._measuring: asyncio.Task[None] | None = None
        self._encoder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="live")
        self._stopped = False

    @property
    def viewers(self) -> int:
        """The number of viewers now."""
        return len(self._viewers)

    @property
    def bytes_per_s(self) -> float:
        """See ``Source``."""
        return _BYTES_PER_S / max(1, len(self._viewers))

    def listed(self) -> list[dict[str, Any]]:
        """The topics that can be watched, as clients are told."""
        return [
            {"topic": name, "type": each.info.type, "kind": each.info.kind, "robot": each.info.robot, "hz": each.hz}
            for name, each in self._topics.items()
        ]

    def view(self, cut: Callable[[], None] = lambda: None) -> Viewer:
        """Begin a view; close it when done. ``cut`` ends the connection to a client that takes up too much."""
        viewer = Viewer(self, cut)
        if self._stopped:
            viewer.close()
            return viewer
        self._viewers[viewer] = None
        viewer.say(text("topics", topics=self.listed()))
        if self._measuring is None:
            self._measuring = asyncio.get_running_loop().create_task(self._measure(), name="live rates")
            self._measuring.add_done_callback(report_defect)
        return viewer

    def stop(self) -> None:
        """End all viewers, now and in future. Twice is fine."""
        self._stopped = True
        for viewer in list(self._viewers):
            viewer.close()
        self._encoder.shutdown(wait=False, cancel_futures=True)

    def topic(self, name: str) -> LiveTopic:
        """The listed topic of that name. Raises ``UserError`` for any other."""
        found = self._topics.get(name)
        if found is None:
            raise UserError(f"nobody in this run publishes on {name!r}{suggest(name, self._topics)}")
        return found

    def watchable(self, name: str) -> LiveTopic:
        """See ``Source``."""
        found = self.topic(name)
        if registry.find(found.info.type) is None:
            why = f"the bridge knows no message type {found.info.type!r}{registry.hint(found.info.type)}"
            raise UserError(f"{name!r} can't be shown: {why}")
        return found

    def on_sent(self) -> None:
        """See ``Source``. If too much is on the way, those that have not acknowledged any for longest are cut off."""
        while sum(viewer.unseen for viewer in self._viewers) > MAX_UNSEEN:
            min(self._viewers, key=lambda viewer: viewer.unseen_since).cut()

    def forget(self, viewer: Viewer) -> None:
        """See ``Source``."""
        self._viewers.pop(viewer, None)
        if not self._viewers and self._measuring is not None:
            self._measuring.cancel()
            self._measuring = None
            for topic in self._topics.values():
                topic.count(wanted=False)

    async def _measure(self) -> None:
        while True:
            now = clock.monotonic()
            for topic in self._topics.values():
                topic.count(wanted=True)
                topic.measure(now)
            rates = {name: topic.hz for name, topic in self._topics.items() if topic.hz is not None}
            message = text("rates", hz=rates)
            for viewer in self._viewers:
                viewer.say(message)
            await asyncio.sleep(_RATES_EVERY_S)

    def _make(self, work: Callable[[], LiveFrame | Fault], done: Callable[[LiveFrame | Fault], None]) -> None:
        """See ``Making``. Pictures are made one at a time, however many are wanted."""
        loop = asyncio.get_running_loop()
        if clock.is_virtual():
            loop.call_soon(lambda: done(work()))
            return
        making = in_executor(self._encoder, work)
        making.add_done_callback(lambda made: None if made.cancelled() else done(made.result()))
