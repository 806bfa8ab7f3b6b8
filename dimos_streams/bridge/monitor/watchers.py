"""The watchers of one run, or of one recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dimos_streams.bridge.monitor.view import StateView, part_of
from dimos_streams.bridge.monitor.watcher import Watcher
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.operator.messages.run import MonitorSnapshot

_SHOWN = frozenset({"open", "update", "close"})
"""Types of events that are shown by themselves. Progress is seen in the state, as it would be too many events, and
the events missing in a gap have led to what is there."""


class Watchers:
    """Gives each watcher the part that it is to see. A state is encoded once for all who see the same of it."""

    def __init__(self, look: Callable[[], None]) -> None:
        """``look`` asks for a look at the state, soon."""
        self._look = look
        self._watchers: dict[Watcher, None] = {}
        self._views: dict[str | None, StateView] = {}
        self._gaps = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self._watchers)

    def __iter__(self) -> Iterator[Watcher]:
        return iter(tuple(self._watchers))

    @property
    def gaps(self) -> int:
        """Number of times that a watcher's queue was full."""
        return self._gaps + sum(watcher.gaps for watcher in self._watchers)

    def watch(self, agent: str | None, on_leaving: Callable[[], None] = lambda: None) -> Watcher:
        """A watcher of everything or of one agent; close it when done. ``on_leaving`` is called then."""

        def forget(watcher: Watcher) -> None:
            self._forget(watcher)
            on_leaving()

        watcher = Watcher(agent, look=self._look, forget=forget)
        if self._closed:
            watcher.close()
        else:
            self._watchers[watcher] = None
        return watcher

    def want(self, agent: str) -> bool:
        """Return whether anybody wants the events of an agent."""
        return any(watcher.wants(agent) for watcher in self._watchers)

    def offer(self, agent: str, event: bytes) -> None:
        """Offer an event of an agent, a message without its ``seq``."""
        for watcher in self._watchers:
            if watcher.wants(agent):
                watcher.offer(event)

    def offer_call(self, entry: EncodedEntry) -> None:
        """Offer an event of a call, if it is shown by itself."""
        if entry.type in _SHOWN:
            self.offer(entry.caller, b'{"type":"call","offset":%d,"event":%b}' % (entry.offset, entry.body))

    def show(self, utime: int, state: MonitorSnapshot) -> None:
        """Show the newest state, which contains all that was offered before, where it is different."""
        for agent in dict.fromkeys(watcher.agent for watcher in self._watchers):
            snapshot = part_of(state, agent)
            if agent not in self._views or snapshot != self._views[agent].snapshot:
                self._views[agent] = StateView(utime, snapshot)
        for watcher in self._watchers:
            watcher.show(self._views[watcher.agent])

    def begin_anew(self) -> None:
        """Drop what waits, as it is of another time: everybody gets the whole state next."""
        self._views.clear()
        for watcher in self._watchers:
            watcher.begin_anew()

    def close(self) -> None:
        """End all watchers, now and in future. Twice is fine."""
        self._closed = True
        for watcher in self:
            watcher.close()

    def _forget(self, watcher: Watcher) -> None:
        self._gaps += watcher.gaps
        self._watchers.pop(watcher, None)
        if not any(other.agent == watcher.agent for other in self._watchers):
            self._views.pop(watcher.agent, None)
