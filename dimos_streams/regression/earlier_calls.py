"""The calls that began before a log, as in a part that was cut out of a longer one: they can't be made again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.recording.format import LogEvent
from dimos_streams.regression.scope import MARGIN_US, Scope
from dimos_streams.tool_stream.event import CALLS, EVENTS, ToolEvent
from dimos_streams.tool_stream.wire.unpacking import unpack_event

_SHOWN = 4


class EarlierCalls:
    """The calls of the modules under test of which a log has neither the request nor the first event.

    What they said is not compared. No message tells which call it was sent for, so until such a call ends it is no
    difference, either, if a message of its module has no counterpart.
    """

    def __init__(self, calls: Mapping[str, ToolEvent], writers: Mapping[str, frozenset[str]]) -> None:
        """``calls`` are events of theirs, by id; ``writers`` the modules that may send on a channel."""
        self.names = [f"{event.skill} [{call_id}]" for call_id, event in calls.items()]
        self._calls = calls
        self._writers = writers
        self._running: dict[str, set[str]] = {}
        for call_id, event in calls.items():
            self._running.setdefault(event.module, set()).add(call_id)
        self._free_since: dict[str, int] = {}

    def remark(self) -> str:
        """What a reader of the comparison should know of them; there must be one at least."""
        is_one = len(self.names) == 1
        calls, they, end = ("1 call", "it", "ends") if is_one else (f"{len(self.names)} calls", "they", "end")
        senders = ", ".join(sorted(self._running))
        shown = ", ".join(self.names[:_SHOWN]) + (", …" if len(self.names) > _SHOWN else "")
        return (
            f"{calls} began before the log: what {they} said is not compared, nor what {senders} sent before"
            f" {they} {end}: {shown}"
        )

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls

    def watch(self, event: ToolEvent, utime: int) -> None:
        """Learn from an event of such a call, which came at ``utime``, whether it has ended."""
        if event.type == "close":
            self._running[event.module].discard(event.call_id)
            self._free_since[event.module] = utime

    def may_have_sent(self, channel: str, utime: int) -> bool:
        """Return whether a message of a channel may have come of such a call."""
        return any(self._may_have_acted(module, utime) for module in self._writers.get(channel, ()))

    def _may_have_acted(self, module: str, utime: int) -> bool:
        since = self._free_since.get(module)
        return bool(self._running.get(module)) or (since is not None and utime <= since + MARGIN_US)


def earlier_calls(events: Iterable[LogEvent], scope: Scope) -> EarlierCalls:
    """Return the calls that began before a log with such events."""
    begun = set[str]()
    heard: dict[str, ToolEvent] = {}
    for event in events:
        try:
            if event.channel == CALLS:
                begun.add(decode(SkillCall, event.data, CALLS).call_id)
            elif event.channel == EVENTS:
                said = unpack_event(event.data)
                if said.type == "open":
                    begun.add(said.call_id)
                elif said.module in scope.names:
                    heard.setdefault(said.call_id, said)
        except MessageError:  # damaged; whoever replays the log leaves it out
            continue
    return EarlierCalls({call: said for call, said in heard.items() if call not in begun}, scope.writers)
