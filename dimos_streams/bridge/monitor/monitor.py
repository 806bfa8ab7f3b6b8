"""The monitor: reads all events once, keeps the state, and reports both to its watchers."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.monitor.collector import Collector
from dimos_streams.bridge.monitor.reports import Reports
from dimos_streams.bridge.monitor.robots import Robots
from dimos_streams.bridge.monitor.sources import RunSources
from dimos_streams.bridge.monitor.view import message
from dimos_streams.bridge.monitor.watcher import Watcher
from dimos_streams.bridge.monitor.watchers import Watchers
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import end_tasks, report_defect
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.broadcast_reader import BroadcastReader
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.tool_stream.event import ToolEvent

STATE_EVERY_S = 0.2
"""Time between two looks at the state, in seconds."""
LINGER_S = 2.0
"""Time, in seconds, after which agents learn that nobody watches any more."""
_MAX_REPORTED = 2048
"""Maximum number of reports' events that wait to be read; what is lost beyond it is in the next snapshot."""

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class MonitorStatistics:
    """Watchers now, and counts since the monitor was made."""

    watchers: int
    gaps: int
    """Number of times that a watcher's queue was full."""
    malformed: int
    """Number of reports and robots' messages that could not be read."""


class Monitor:
    """The monitor of a run. It costs nothing while nobody watches. Use from the bus's loop only.

    It looks at the state every 0.2 s, and shows it only if it is different. All events that the state contains were
    read before, because a look reads what is there and then takes the state without letting anything happen in
    between.
    """

    def __init__(self, broker: Broker, broadcast: JournalBroadcast) -> None:
        self._broker = broker
        self._broadcast = broadcast
        self._reports = Reports(broker, self._look_soon)
        self._robots = Robots(broker.bus)
        self._collector = Collector(RunSources(broker, self._reports, self._robots))
        self._watchers = Watchers(self._look_soon)
        self._watched_at: dict[str, float] = {}
        """Times at which somebody last watched an agent, by its name, as long as that counts."""
        self._reported: deque[tuple[int, ToolEvent]] = deque(maxlen=_MAX_REPORTED)
        """Events of reports that have not been read, each with the offset behind which it came."""
        self._alone_since = 0.0
        self._due = False
        """True if a look is due."""
        self._nudge: Callable[[], None] = lambda: None
        self._pump: asyncio.Task[None] | None = None
        self._stopped = False

    def start(self) -> None:
        """Begin. Reports that an earlier life of the process has asked for end when nobody comes to watch."""
        self._alone_since = clock.monotonic()
        if any(not call.journalled for call in self._broker.ledger.calls.open):
            self._run()

    async def stop(self) -> None:
        """End all watchers, now and in future. Twice is fine."""
        self._stopped = True
        self._watchers.close()
        pump, self._pump = self._pump, None
        if pump is not None:
            await end_tasks(pump)
        await self._reports.stop()
        self._robots.stop()

    def watch(self, agent: str | None = None) -> Watcher:
        """A watcher of everything or (by its module or namespace) of one agent; close it when done."""
        watcher = self._watchers.watch(agent, on_leaving=self._note_leaving)
        if not self._stopped:
            self._run()
            self._look_soon()
        return watcher

    def statistics(self) -> MonitorStatistics:
        """The counters of the monitor."""
        malformed = self._reports.malformed + self._robots.malformed
        return MonitorStatistics(len(self._watchers), self._watchers.gaps, malformed)

    def _note_leaving(self) -> None:
        self._alone_since = clock.monotonic()

    def _run(self) -> None:
        """Read events from now on, if that is not done already."""
        if self._pump is None or self._pump.done():
            reading = self._read(self._broadcast.reader(), self._broker.ledger.listen_unjournalled(self._on_report))
            self._pump = asyncio.get_running_loop().create_task(reading, name="monitor")
            self._pump.add_done_callback(report_defect)

    async def _read(self, reader: BroadcastReader, end_listening: Callable[[], None]) -> None:
        try:
            while not (self._is_over() or reader.closed):
                while reader.lag and not reader.closed:
                    self._read_entries(await reader.page())
                self._read_reports(reader.offset)
                self._look()
                await self._read_for_a_while(reader)
        finally:
            reader.close()
            end_listening()
            self._reported.clear()
        if self._is_over():
            self._reports.want(())
            self._reports.end_left()
            self._robots.stop()

    async def _read_for_a_while(self, reader: BroadcastReader) -> None:
        self._due = False
        self._nudge = reader.nudge
        timer = asyncio.get_running_loop().call_later(STATE_EVERY_S, self._look_soon)
        try:
            while not (self._due or reader.closed):
                self._read_entries(await reader.page())
                self._read_reports(reader.offset)
        finally:
            timer.cancel()

    def _look_soon(self) -> None:
        self._due = True
        self._nudge()

    def _is_over(self) -> bool:
        return not self._watchers and clock.monotonic() - self._alone_since >= LINGER_S

    def _on_report(self, offset: int, event: ToolEvent) -> None:
        """Keep an event of a report for its turn among the other events, which come by another path."""
        self._reported.append((offset, event))
        self._nudge()

    def _read_entries(self, entries: list[EncodedEntry]) -> None:
        for entry in entries:
            self._read_reports(entry.offset - 1)
            self._watchers.offer_call(entry)

    def _read_reports(self, upto: int) -> None:
        """Read the events of reports that came before whatever is behind an offset."""
        while self._reported and self._reported[0][0] <= upto:
            event = self._reports.read(self._reported.popleft()[1])
            if event is not None:
                self._watchers.offer(event.agent, message("event", event=event))

    def _look(self) -> None:
        """Take the state as it is now, and show it where it is different. What can't be shown of it now is shown when
        it can be: consoles must not go blind because of one call."""
        try:
            state = self._collector.snapshot(len(self._watchers))
        except Exception:
            _log.exception("the state can't be shown to operators this time")
            state = None
        self._want_reports()
        if state is not None:
            self._watchers.show(clock.utime(), state)

    def _want_reports(self) -> None:
        now = clock.monotonic()
        agents = self._collector.agents
        for agent in agents:
            if self._watchers.want(agent.name):
                self._watched_at[agent.name] = now
        self._watched_at = {name: at for name, at in self._watched_at.items() if now - at < LINGER_S}
        self._reports.want(agent for agent in agents if agent.name in self._watched_at)
