"""The state of each call, folded from its events."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from pydantic import ConfigDict, Field

from dimos_streams import clock
from dimos_streams.bridge.journal.tables import CallRow
from dimos_streams.common.moment import Moment
from dimos_streams.common.readable.shortening import at_most
from dimos_streams.skill import OnDuplicate, OnLoss
from dimos_streams.tool_stream.event import ToolEvent, json_text
from dimos_streams.tool_stream.family import ancestors_of
from dimos_streams.tool_stream.gateway import CallPhase, CallView
from dimos_streams.tool_stream.opening import opening_of
from dimos_streams.tool_stream.overtaken import OrderKind

_SEEN = tuple(CallView.model_fields)
_LONGEST_PAUSE_S = 0.5
REQUESTED: Final = "requested"
OPEN: Final = "open"
CLOSED: Final = "closed"
_NO_FIELDS_SET: Final[set[str]] = set()
"""A stand-in for pydantic's set of the fields that were given at the beginning, which nobody asks a call for."""
CANCEL_OVERDUE_S: Final = 3.0
"""Time, in seconds, that a call has to end once asked to; operators hear of one that goes on for longer."""
_SHORT_TEXT, _MAX_PLAIN = 200, 32
"""Maximum characters of a text, and number of values, that are remembered of an unsolicited call."""
_LEASE = 500
"""Approximate memory of a resource that a call holds, besides its name, in bytes."""


@dataclass(slots=True)
class Repeat:
    """The schedule for repeating a message that nobody has reacted to; each pause is longer than the one before."""

    at: float
    pause: float = 0.1
    sent: int = 0
    utime: int = field(default_factory=clock.utime)
    """Time at which it was first to be sent, µs since the Unix epoch."""
    since: float = field(default_factory=clock.monotonic)
    """The same on the monotonic clock, which nobody sets."""

    def take_turn(self, now: float) -> bool:
        """Take the turn to send, if it has come, and set the next one; return whether it was taken."""
        if now < self.at:
            return False
        self.at, self.pause, self.sent = now + self.pause, min(self.pause * 1.5, _LONGEST_PAUSE_S), self.sent + 1
        return True


class CallState(CallView):
    """A call while the broker remembers it: what callers see of it, as it changes, and what only the bridge knows.

    The journal keeps it as JSON, but for the fields that belong to this life of the bridge.
    """

    model_config = ConfigDict(extra="ignore", frozen=False, arbitrary_types_allowed=True)

    parent: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    state: CallPhase = REQUESTED

    key: str | None = None
    """The idempotency key with which it was begun."""
    number: int = 0
    """Its number among the calls that have begun: the time in µs, or where the clock was set back one more than that
    of the call before; 0 if it has none."""
    events_from: int = 0
    """The journal's next offset when it began: its events have that one or later ones. 0 if that is not known."""
    by_agent: bool = False
    """True if ``caller``, who stands at the beginning of the chain, is an agent."""
    journalled: bool = True
    """True if its events are kept and read by everybody; False if only the bridge itself reads them."""
    asked_on_loss: OnLoss | None = None
    """The policy for a cut link that its caller asks for; it also holds for the calls that this one begins."""
    instance: str = ""
    """The instance of its module in which it runs; empty until an event of it or a heartbeat names it."""
    cancel_reason: str | None = None
    """The reason why it was asked to end; None if it was not."""

    overruled: dict[str, OrderKind] = Field(default_factory=dict)
    """The orders since it was asked for, by the robot that they are for (see ``overruling``), which also hold for the
    calls that it begins."""
    on_duplicate: OnDuplicate | None = Field(default=None, exclude=True)
    """The fate that it asks for where a duplicate of it runs; None leaves that to its skill."""
    lease_wait_s: float = Field(default=0.0, exclude=True)
    """Maximum time, in seconds, that it may wait for a resource that another call holds."""
    begin_by: float | None = Field(default=None, exclude=True)
    """The latest time at which it may begin, on ``clock.steady``; None if there is no limit."""
    since: float = Field(default_factory=clock.monotonic, exclude=True)
    """Time at which it was requested, or taken over from the journal, on the loop's clock."""
    listed: float = Field(default=0.0, exclude=True)
    """Time at which its module last showed by an event or a heartbeat that it runs it, on the loop's clock."""
    request: Repeat | None = Field(default=None, exclude=True)
    cancel: Repeat | None = Field(default=None, exclude=True)
    unsolicited: bool = Field(default=False, exclude=True)
    """True if it was begun without the broker, since the broker started."""
    missing_open: bool = Field(default=False, exclude=True)
    """True if its ``open`` is gone, and with it what the call uses; that is looked up when its skill is known."""
    closing: bool = Field(default=False, exclude=True)
    """True while it is being given up as lost."""
    last: ToolEvent | None = Field(default=None, exclude=True)
    """Its newest event; None for an unsolicited call, whose data may be large."""
    progress: Mapping[str, Any] = Field(default_factory=dict, exclude=True)
    """The data of its newest progress, empty before the first since the bridge was started; of an unsolicited call
    only numbers and short texts."""
    answered: Moment = Field(default_factory=Moment, exclude=True)
    closed: Moment = Field(default_factory=Moment, exclude=True)
    arguments_bytes: int | None = Field(default=None, exclude=True)
    """Approximate memory of its arguments, in bytes; None until somebody asks for ``size``."""

    def model_post_init(self, context: Any, /) -> None:
        # Pydantic's own set is a third of a call's memory.
        object.__setattr__(self, "__pydantic_fields_set__", _NO_FIELDS_SET)

    # Nothing is validated at an assignment, and each event makes four: this takes a third of the time.
    __setattr__ = object.__setattr__

    def changes_state_with(self, event: ToolEvent) -> bool:
        """Return whether the call's next event changes more of its state than its newest text and progress."""
        return (
            event.type in ("open", "close")
            or self.state != OPEN
            or (event.type == "update" and self.answer is None)
            or (bool(event.instance) and not self.instance)
        )

    def apply(self, event: ToolEvent) -> None:
        """Apply the call's next event. It may be skipped before a later one, unless the call ``changes_state_with``
        it or it has the newest progress."""
        if event.seq > self.last_seq:
            self.last_seq = event.seq
        if not self.skill:
            # All that was known of it before was that events of it are gone.
            self.module, self.skill, self.caller = event.module or self.module, event.skill, event.caller
        self.last, self.text = None if self.unsolicited else event, event.text
        if event.type != "gap":  # which the receiver makes itself, of silence
            self.listed = clock.monotonic()
        self.instance = self.instance or event.instance
        if self.state == REQUESTED:
            self.state, self.request = OPEN, None
        if self.answer is None and event.type in ("update", "close"):
            self.answer = event.text
        if event.type == "progress":
            self.progress = _plain(event.data) if self.unsolicited else event.data
        if event.type == "close":
            self.state, self.outcome, self.closed_utime = CLOSED, event.outcome, event.utime
            self.result = event.data.get("result")
            self.cancel, self.progress = None, {}

    @property
    def position(self) -> tuple[int, str]:
        """Its position among all calls, oldest first."""
        return self.number or self.requested_utime, self.call_id

    @property
    def size(self) -> int:
        """Approximate memory that it takes, in bytes; the last event of a call of ours repeats its text."""
        if self.arguments_bytes is None:
            self.arguments_bytes = _weight(json_text(self.arguments))
        texts = len(self.text) + len(self.answer or "")
        result = 0 if self.result is None else _weight(json_text(self.result))
        leases = sum(_LEASE + len(name) for name in self.resources)
        return 1000 + 2 * texts + result + self.arguments_bytes + leases + len(self.parent)

    def shorten(self) -> None:
        """Keep only the beginnings of its texts; readers of its events have the whole texts."""
        self.text = at_most(self.text, _SHORT_TEXT)
        self.answer = None if self.answer is None else at_most(self.answer, _SHORT_TEXT)

    def wake(self) -> None:
        """Wake those who wait for its answer or its close; call it when the events are safe in the journal."""
        if self.answer is not None:
            self.answered.set()
        if self.state == CLOSED:
            self.closed.set()

    def lingers(self) -> bool:
        """Return whether it was asked to end more than ``CANCEL_OVERDUE_S`` ago and has not ended."""
        if self.state == CLOSED or self.cancel is None:
            return False
        return clock.monotonic() - self.cancel.since > CANCEL_OVERDUE_S

    def view(self) -> CallView:
        """The call at this moment, as callers see it."""
        return CallView(**{name: getattr(self, name) for name in _SEEN})

    def row(self) -> CallRow:
        """The call as the journal keeps it."""
        done_with = {"cancel_reason"} if self.cancel is None else None
        record = self.model_dump_json(exclude=done_with)
        return CallRow(self.call_id, self.last_seq, self.state == CLOSED, record)

    @classmethod
    def from_row(cls, row: CallRow) -> CallState:
        """The inverse of ``row``. Raises pydantic's ``ValidationError`` for an invalid record."""
        call = cls.model_validate_json(row.record)
        call.last_seq, call.listed = row.last_seq, clock.monotonic()
        if call.cancel_reason is not None and call.state != CLOSED:
            call.cancel = Repeat(call.since)
        call.wake()
        return call

    @classmethod
    def from_event(cls, event: ToolEvent) -> CallState:
        """A call that was begun without the broker, at the first of its events that is known."""
        call = cls(
            call_id=event.call_id,
            skill=event.skill,
            module=event.module,
            caller=event.caller,
            requested_utime=event.utime,
            missing_open=event.type != "open",
        )
        if event.type == "open":
            call.begin(event)
        return call

    def begin(self, event: ToolEvent) -> None:
        """Take over from its ``open`` what it was begun with. What is invalid in the event is left out."""
        self.parent, self.arguments, self.resources, self.on_loss = opening_of(event.data)


def _weight(json: str) -> int:
    """Approximate memory of the value of a JSON text, in bytes: short values take more than their text."""
    return len(json) + 64 * sum(map(json.count, "{[")) + 32 * sum(map(json.count, ",:"))


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    plain = ((name, value) for name, value in data.items() if len(name) <= _SHORT_TEXT and _is_short(value))
    return dict(itertools.islice(plain, _MAX_PLAIN))


def _is_short(value: Any) -> bool:
    return len(value) <= _SHORT_TEXT if isinstance(value, str) else value is None or isinstance(value, int | float)


KEEP_CLOSED_BYTES = 4 * 1024 * 1024
"""Maximum size of the texts, arguments and results of closed calls, in bytes; forgotten ones are in the journal."""
_UNSOLICITED_SHARE = 4
"""Divisor of both bounds for unsolicited calls, which are kept apart so that invented ones can't push out others."""


class ClosedCalls:
    """The newest closed calls, within a number and a size."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self.calls: OrderedDict[str, CallState] = OrderedDict()
        self._most, self._most_bytes = most, most_bytes
        self._sizes: dict[str, int] = {}
        self._bytes = 0

    def add(self, call: CallState) -> None:
        """Remember a call, and forget the oldest ones that there is no room for."""
        size = self._sizes[call.call_id] = call.size
        self.calls[call.call_id] = call
        self._bytes += size
        while len(self.calls) > self._most or self._bytes > self._most_bytes:
            oldest, _ = self.calls.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)


class Calls:
    """The calls that the broker remembers: all open ones and the newest closed ones."""

    def __init__(self, keep_closed: int = 1000) -> None:
        self._open: dict[str, CallState] = {}
        self._closed = ClosedCalls(keep_closed, KEEP_CLOSED_BYTES)
        self._of_agents = ClosedCalls(keep_closed, KEEP_CLOSED_BYTES)
        """Apart from the others: agents take these calls back, however often somebody has asked how they are."""
        self._unsolicited = ClosedCalls(keep_closed // _UNSOLICITED_SHARE, KEEP_CLOSED_BYTES // _UNSOLICITED_SHARE)
        self._kept = (self._closed, self._of_agents, self._unsolicited)

    def __iter__(self) -> Iterator[CallState]:
        """Iterate over the calls, oldest first."""
        closed = (call for kept in self._kept for call in kept.calls.values())
        return iter(sorted([*closed, *self._open.values()], key=attrgetter("position")))

    def get(self, call_id: str) -> CallState | None:
        """One call, None if it is not remembered."""
        if call_id in self._open:
            return self._open[call_id]
        return next((kept.calls[call_id] for kept in self._kept if call_id in kept.calls), None)

    def add(self, call: CallState) -> None:
        """Remember a call."""
        if call.state != CLOSED:
            self._open[call.call_id] = call
        else:
            kept = self._unsolicited if call.unsolicited else self._of_agents if call.by_agent else self._closed
            kept.add(call)

    def close(self, call: CallState) -> None:
        """Put a call that has closed among the closed ones."""
        self._open.pop(call.call_id, None)
        self.add(call)

    @property
    def open(self) -> list[CallState]:
        """The calls that are not closed, oldest first."""
        return list(self._open.values())


def chain(calls: Calls, call: CallState) -> str:
    """The skills that have led to a call, as people read them: ``tidy_up → go_to``."""
    above = (calls.get(call_id) for call_id in reversed(ancestors_of(call.call_id)))
    return " → ".join([*(each.skill if each is not None else "?" for each in above), call.skill])
