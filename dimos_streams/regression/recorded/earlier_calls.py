"""The calls that began before a log, as in a part that was cut out of a longer one: they can't be made again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall
from dimos_streams.recording.format import LogEvent
from dimos_streams.regression.scope import MARGIN_US, Scope
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS, STATUS
from dimos_streams.tool_stream.wire.unpacking import unpack_event

_SHOWN = 4


@dataclass(slots=True)
class EarlierCall:
    """A call of which a log has neither the request nor the first event."""

    module: str
    skill: str = ""
    """Empty if the log has no event of the call."""
    over: float = math.inf
    """The time in µs at which it was over at the latest."""
    is_closed: bool = False
    named: int | None = None
    """The stamp of the newest heartbeat that names it."""

    @property
    def name(self) -> str:
        """The name that people know it by."""
        return self.skill or f"a call of {self.module}"


class EarlierCalls:
    """The calls of the modules under test that began before a log.

    What they said is not compared. No message tells which call it was sent for, so until such a call is over it is no
    difference, either, if a message of its module has no counterpart.
    """

    def __init__(self, calls: Mapping[str, EarlierCall], writers: Mapping[str, frozenset[str]]) -> None:
        """``calls`` are by id; ``writers`` are the modules that may send on a channel."""
        self.names = [f"{call.name} [{call_id}]" for call_id, call in calls.items()]
        self._ids = frozenset(calls)
        self._writers = writers
        self._over: dict[str, float] = {}
        for call in calls.values():
            self._over[call.module] = max(call.over, self._over.get(call.module, call.over))

    def remark(self) -> str:
        """The remark on them for readers of the comparison; there must be one at least."""
        is_one = len(self.names) == 1
        calls, they, end = ("1 call", "it", "ends") if is_one else (f"{len(self.names)} calls", "they", "end")
        senders = ", ".join(sorted(self._over))
        shown = ", ".join(self.names[:_SHOWN]) + (", …" if len(self.names) > _SHOWN else "")
        return (
            f"{calls} began before the log: what {they} said is not compared, nor what {senders} sent before"
            f" {they} {end}: {shown}"
        )

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._ids

    def may_have_sent(self, channel: str, utime: int) -> bool:
        """Return whether a message of a channel may have come of such a call."""
        return any(
            module in self._over and utime <= self._over[module] + MARGIN_US
            for module in self._writers.get(channel, ())
        )


def earlier_calls(events: Iterable[LogEvent], scope: Scope) -> EarlierCalls:
    """Return the calls that began before a log with such events."""
    search = _Search(scope.names)
    for event in events:
        try:
            search.take(event)
        except MessageError:  # damaged; whoever replays the log leaves it out
            continue
    return EarlierCalls(search.found(), scope.writers)


class _Search:
    """A search for such calls, which takes a log's events in their order.

    A call is over at its close, or when its module's heartbeats no longer name it: the close may be missing, or be
    from before the log if an event was sent again behind it.
    """

    def __init__(self, modules: frozenset[str]) -> None:
        self._modules = modules
        self._begun: set[str] = set()
        self._calls: dict[str, EarlierCall] = {}
        self._running: dict[str, dict[str, EarlierCall]] = {name: {} for name in modules}
        self._first_beats: dict[str, tuple[int, int]] = {}
        """The stamp of each module's first heartbeat, and when it came."""

    def take(self, event: LogEvent) -> None:
        """Take an event. Raises ``MessageError`` for a damaged one."""
        if event.channel == CALLS:
            self._begun.add(decode(SkillCall, event.data, CALLS).call_id)
        elif event.channel == EVENTS:
            self._hear(unpack_event(event.data), event.utime)
        elif event.channel == STATUS:
            self._feel(decode(ModuleStatus, event.data, STATUS), event.utime)

    def found(self) -> dict[str, EarlierCall]:
        """Return the calls that were found, by id."""
        return {call_id: call for call_id, call in self._calls.items() if call_id not in self._begun}

    def _hear(self, said: ToolEvent, utime: int) -> None:
        if said.type == "open":
            self._begun.add(said.call_id)
        if said.call_id in self._begun or said.module not in self._modules:
            return
        call = self._calls.get(said.call_id) or self._add(said.call_id, said.module)
        call.skill = said.skill
        if said.type == "close" and not call.is_closed:
            call.is_closed = True
            self._end(said.call_id, call, utime)

    def _feel(self, status: ModuleStatus, utime: int) -> None:
        """Take a heartbeat. Those of one stamp are parts of one, and each names other calls."""
        module = status.module
        if module not in self._modules or status.skills_json:  # such a one may be older than the part that has it
            return
        first, _ = self._first_beats.setdefault(module, (status.utime, utime))
        for call_id in status.call_ids:
            call = self._calls.get(call_id)
            if call is None and status.utime == first and call_id not in self._begun:
                call = self._add(call_id, module)
            if call is not None and call.module == module and not call.is_closed:
                call.over, call.named = math.inf, status.utime
                self._running[module][call_id] = call
        for call_id, call in list(self._running[module].items()):
            if call.named != status.utime:
                self._end(call_id, call, utime)

    def _add(self, call_id: str, module: str) -> EarlierCall:
        """Add a call. It is over already if its module's first heartbeat did not name it."""
        call = self._calls[call_id] = EarlierCall(module)
        if module in self._first_beats:
            _, call.over = self._first_beats[module]
        else:
            self._running[module][call_id] = call
        return call

    def _end(self, call_id: str, call: EarlierCall, utime: int) -> None:
        call.over = utime
        self._running[call.module].pop(call_id, None)
