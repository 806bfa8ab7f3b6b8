"""The playback of a recording: what happens at the moment that is shown reaches the page as if it happened now."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator

from dimos_streams import clock
from dimos_streams.bridge.monitor.collector import Collector
from dimos_streams.bridge.monitor.view import message
from dimos_streams.bridge.monitor.watcher import Watcher
from dimos_streams.bridge.monitor.watchers import Watchers
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import MessageError
from dimos_streams.journal.query import Query
from dimos_streams.operator.known_names import MONITOR
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.tape import Place
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from dimos_streams.viewer.bus import ReplayBus
from dimos_streams.viewer.index import KEY_BYTES, Index
from dimos_streams.viewer.transport import Transport
from dimos_streams.viewer.transport_commands import PausePlayback, Play, Seek, Speed, StepPlayback, TransportCommand

TICK_S = 1 / 30
LOOK_EVERY_S = 0.1
REST_S = 1.0
"""The pause between looks at a moment that stands, within which a watcher gets no newer state."""
_NEAR_US = 5_000_000
"""The farthest moment ahead, in µs, that is reached by playing what is between."""
_PAGE = 256
_PAGE_BYTES = 256 * 1024

_log = LimitedLog(logging.getLogger(__name__))


class Playback:
    """The playback of one recording, of which it shows one moment. ``run`` keeps it going, and pages control it
    with ``carry_out``. Use from one loop only."""

    def __init__(self, index: Index, bus: ReplayBus) -> None:
        """``bus`` is open, and gets what is shown."""
        self.index = index
        self.transport = Transport(index.begin, index.end)
        self.watchers = Watchers(self._look_soon)
        self.changed = asyncio.Event()
        """An event that is set when the transport has changed; each change makes a new one to wait for."""
        self._bus = bus
        self._update = asyncio.Event()
        self._looked_at = float("-inf")
        self._played = False
        bus.show_newest = self._show_newest
        self._go_to(index.begin)

    def utime(self) -> int:
        """The moment that is shown, µs."""
        return self.world.utime

    def watch(self, agent: str | None = None) -> Watcher:
        """See ``Monitor.watch``."""
        watcher = self.watchers.watch(agent)
        self._look_soon()
        return watcher

    def carry_out(self, command: TransportCommand) -> None:
        """Do what a page asks for."""
        now, transport = clock.monotonic(), self.transport
        if isinstance(command, Play):
            transport.play(now)
        elif isinstance(command, PausePlayback):
            transport.pause(now)
        elif isinstance(command, Speed):
            transport.set_speed(now, command.speed)
        elif isinstance(command, Seek):
            transport.seek(now, command.utime)
        elif isinstance(command, StepPlayback):
            self._step(now, back=command.back)
        self.show(transport.at(now))
        self._look_soon()
        self._notify()

    def show(self, utime: int) -> None:
        """Have this moment be the one that is shown."""
        farthest = self.world.utime + max(_NEAR_US, self._tick_us())
        if self.world.utime <= utime <= farthest and self._is_soon_read(utime):
            self._advance(utime, shows=True)
        else:
            self._go_to(utime)
            self.watchers.begin_anew()
            self._show_all()
            self._look_soon()

    async def run(self) -> None:
        """Play for as long as that is wanted, for ever. What can't be shown goes to the log, and play stops there."""
        while True:
            try:
                self._play()
                self._look()
            except Exception as error:  # a log that can't be read any more, for instance
                _log.exception("nothing is played after %d µs: %s", self.world.utime, error)
                self.transport.pause(clock.monotonic())
                self._notify()
            self._update.clear()
            await ends_within(TICK_S if self.transport.playing else REST_S, self._update.wait())

    def close(self) -> None:
        """End all watchers. Twice is fine."""
        self.watchers.close()

    def _play(self) -> None:
        if self.transport.playing or self._played:
            self.show(self.transport.at(clock.monotonic()))
            # At its end what is shown last is the last there is; whoever asked for the moment may have met it first.
            if not self.transport.playing:
                self._look_soon()
                self._notify()
        self._played = self.transport.playing

    def _is_soon_read(self, utime: int) -> bool:
        """Return whether little was recorded up to a moment, however near it is: everything may be at one instant."""
        return self._next is None or self.index.key_before(utime).place.offset <= self._next.offset + KEY_BYTES

    def _tick_us(self) -> int:
        """Return the time of the log, in µs, that may pass between two looks while it plays; 0 while it stands."""
        return round(self.transport.speed * 2e6) if self.transport.playing else 0

    def _step(self, now: float, *, back: bool) -> None:
        self.transport.pause(now)
        at = self.transport.at(now)
        marks = self.index.marks
        found = marks.before(at) if back else marks.after(at)
        edge = self.index.begin if back else self.index.end
        self.transport.seek(now, edge if found is None else found)

    def _notify(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
        self._update.set()

    def _look_soon(self) -> None:
        self._looked_at = float("-inf")
        self._update.set()

    def _look(self) -> None:
        """Show the state, now and then while it plays."""
        now = clock.monotonic()
        if len(self.watchers) and now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            self.watchers.show(self.world.utime, self._collector.snapshot(len(self.watchers)))

    def _go_to(self, utime: int) -> None:
        """Go to a moment, from the last kept one before it."""
        key = self.index.key_before(utime)
        self.world = key.world.copy()
        self._collector = Collector(self.world)
        self._events = self._from(key.place)
        self._next = next(self._events, None)
        self._advance(utime, shows=False)

    def _from(self, place: Place) -> Iterator[LogEvent]:
        return (event for event, _ in self.index.tape.events(place))

    def _advance(self, utime: int, *, shows: bool) -> None:
        """Take what was recorded up to a moment, and show it if that is wanted."""
        while self._next is not None and self._next.utime <= utime:
            event, self._next = self._next, next(self._events, None)
            with contextlib.suppress(MessageError):  # the index has counted it
                self.world.take(event)
                if event.channel == EVENTS:
                    self._report(event, shows=shows)
            if shows:
                self._bus.replay(event)
        self._hear(self.index.heard_until(utime), shows=shows)
        self.world.utime = max(self.world.utime, utime)

    def _report(self, event: LogEvent, *, shows: bool) -> None:
        unpacked = unpack_event(event.data)
        if unpacked.caller == MONITOR:
            reported = self.world.report(unpacked)
            if reported is not None and shows:
                self.watchers.offer(reported.agent, message("event", event=reported))

    def _hear(self, upto: int, *, shows: bool) -> None:
        """Take the events of calls up to an offset of the journal."""
        while self.world.offset < upto:
            found = self.index.journal.read(
                Query(self.world.offset), min(_PAGE, upto - self.world.offset), _PAGE_BYTES
            )
            if not found.entries:
                break
            for entry in found.entries:
                self.world.hear(entry.offset, entry.event)
                if shows:
                    self.watchers.offer_call(entry)

    def _show_all(self) -> None:
        """Put the newest message of each channel that somebody watches onto the bus."""
        for channel in self.world.newest:
            if self._bus.has_subscribers(channel):
                self._show_newest(channel)

    def _show_newest(self, channel: str) -> None:
        offset = self.world.newest.get(channel)
        event = None if offset is None else self.index.tape.event_at(offset)
        if event is not None and event.channel == channel:
            self._bus.replay(event)
