"""The state of one call, folded from its events."""

from __future__ import annotations

import copy
import itertools
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.bridge.calls.state.journalled_call import CLOSED, JOURNALLED_CALL, OPEN, REQUESTED, JournalledCall
from dimos_streams.bridge.calls.state.repeat import Repeat
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.moment import Moment
from dimos_streams.common.readable.shortening import at_most
from dimos_streams.journal.tables import CallRow
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.gateway import CallView
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.opening import opening_of
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON
from dimos_streams.tool_stream.protocol.close_data import STOPPED, TO_END

CANCEL_OVERDUE_S: Final = 3.0
"""Time, in seconds, that a call has to end once asked to; operators hear of one that goes on for longer."""
_SHORT_TEXT, _MAX_PLAIN = 200, 32
"""Maximum characters of a text, and number of values, that are remembered of an unsolicited call."""
_LEASE = 500
"""Approximate memory of a resource that a call holds, besides its name, in bytes."""
_SEEN = tuple(CallView.model_fields)
_KEPT = tuple(each.name for each in fields(JournalledCall))
_log = LimitedLog(logging.getLogger(__name__))


@dataclass(slots=True, eq=False)
class CallState(JournalledCall):
    """A call while a bridge, a hub or a viewer remembers it, as it changes with its events.

    Its own fields are in memory only: they belong to this life of the bridge. Each event of each call changes some,
    so this is no frozen value that is replaced.
    """

    on_duplicate: OnDuplicate | None = None
    """The fate that it asks for where a duplicate of it runs; None leaves that to its skill."""
    lease_wait_s: float = 0.0
    """Maximum time, in seconds, that it may wait for a resource that another call holds."""
    robot_order: int | None = None
    """The number of the newest order to robots that its caller knew; None if that does not matter."""
    since: float = field(default_factory=clock.monotonic)
    """Time at which it was requested, or taken over from the journal, on the loop's clock."""
    asked: str = ""
    """The instance of its module that was to begin it; empty for a call that was taken over from the journal."""
    asked_started_utime: int = 0
    """The start of that instance, by the clock of its machine; 0 if it is not known."""
    listed: float = 0.0
    """Time at which its module last showed by an event or a heartbeat that it runs it, on the loop's clock."""
    request: Repeat | None = None
    """The schedule of asking its module to begin it; None if it need not be asked any more."""
    cancel: Repeat | None = None
    """The schedule of asking it to end; None if nobody wants it to."""
    unsolicited: bool = False
    """True if it was begun without the broker, since the broker started."""
    missing_open: bool = False
    """True if its ``open`` is gone, and with it what the call uses; that is looked up when its skill is known."""
    closing: bool = False
    """True while it is being given up as lost."""
    last: ToolEvent | None = None
    """Its newest event; None for an unsolicited call, whose data may be large."""
    progress: Mapping[str, Any] = field(default_factory=dict)
    """The data of its newest progress, empty before the first since the bridge was started; of an unsolicited call
    only numbers and short texts."""
    answered: Moment = field(default_factory=Moment)
    """The moment from which its answer is safe in the journal."""
    closed: Moment = field(default_factory=Moment)
    """The moment from which its close is safe in the journal."""
    arguments_bytes: int | None = None
    """Approximate memory of its arguments, in bytes; None until somebody asks for ``size``."""

    def is_named_in(self, event: ToolEvent) -> bool:
        """Return whether an event has the call's names, as far as they are known."""
        return not self.skill or (event.caller, event.skill, event.module) == (self.caller, self.skill, self.module)

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
            self.hear()
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
            to_end = event.data.get(TO_END)
            self.to_end = at_most(to_end, MAX_REASON) if isinstance(to_end, str) else None
            self.cancel, self.progress = None, {}

    def hear(self) -> None:
        """Note that its module shows now that it runs it. What asked it to end in a silence before does not count."""
        now = clock.monotonic()
        if self.state == OPEN and self.cancel is not None and now - self.listed > ALIVE_S:
            self.cancel = self.cancel.anew(now)
        self.listed = now

    def close_by(self, now: int) -> None:
        """Give its close the time at which it was heard of, if the one that its module gave it can't be by the clock
        that timed its request."""
        if self.closed_utime is not None and not (
            self.unsolicited or self.requested_utime <= self.closed_utime <= now
        ):
            self.closed_utime = now

    @property
    def position(self) -> tuple[int, str]:
        """Its position among all calls, oldest first."""
        return self.number or self.requested_utime, self.call_id

    @property
    def size(self) -> int:
        """Approximate memory that it takes, in bytes; the last event of a call of ours repeats its text."""
        if self.arguments_bytes is None:
            self.arguments_bytes = _weight(json_text(self.arguments))
        texts = len(self.text) + len(self.answer or "") + len(self.to_end or "")
        result = 0 if self.result is None else _weight(json_text(self.result))
        leases = sum(_LEASE + len(name) for name in self.resources)
        return 1000 + 2 * texts + result + self.arguments_bytes + leases + len(self.parent)

    def shorten(self) -> None:
        """Keep only the beginnings of its texts; readers of its events have the whole texts."""
        self.text = at_most(self.text, _SHORT_TEXT)
        self.answer = None if self.answer is None else at_most(self.answer, _SHORT_TEXT)
        self.to_end = None if self.to_end is None else at_most(self.to_end, _SHORT_TEXT)

    def wake(self) -> None:
        """Wake those who wait for its answer or its close; call it when the events are safe in the journal."""
        if self.answer is not None:
            self.answered.set()
        if self.state == CLOSED:
            self.closed.set()

    @property
    def is_stopped(self) -> bool:
        """True if it was asked to end because an operator has stopped the robot."""
        return self.cancel is not None and (self.cancel_reason or "").startswith(STOPPED)

    def lingers(self) -> bool:
        """Return whether it was asked to end more than ``CANCEL_OVERDUE_S`` ago and has not ended."""
        if self.state == CLOSED or self.cancel is None:
            return False
        return clock.monotonic() - self.cancel.since > CANCEL_OVERDUE_S

    def view(self) -> CallView:
        """The call at this moment, as callers see it."""
        return CallView(**{name: getattr(self, name) for name in _SEEN})

    @classmethod
    def from_view(cls, view: CallView) -> CallState:
        """The state of a call of which nothing is known but what callers see."""
        return cls(**{name: getattr(view, name) for name in _SEEN})

    def copy(self) -> CallState:
        """The call as it is now; what becomes of it later does not change the copy."""
        return copy.copy(self)

    def restore(self, before: CallState) -> None:
        """Make the call again what it was when ``before`` was copied from it."""
        for each in fields(self):
            setattr(self, each.name, getattr(before, each.name))

    def event(self, seq: int, type: EventType, text: str, data: Mapping[str, Any]) -> ToolEvent:
        """An event of it that happens now and that its module does not write itself."""
        return ToolEvent(
            utime=clock.utime(),
            call_id=self.call_id,
            seq=seq,
            type=type,
            module=self.module,
            skill=self.skill,
            caller=self.caller,
            text=text,
            data=data,
            instance=self.instance,
        )

    def named(self, event: ToolEvent) -> ToolEvent:
        """An event of it under its own names: those of its request or its first event say whose readers it is for,
        whatever a later one claims."""
        if self.is_named_in(event):
            return event
        if event.type != "gap":  # which a receiver may make before it knows the names
            _log.warning("event %d of call %s is in other names than the call", event.seq, self.call_id)
        return replace(event, module=self.module, skill=self.skill, caller=self.caller)

    def row(self) -> CallRow:
        """The call as the journal keeps it."""
        done_with = {"cancel_reason"} if self.cancel is None else None
        record = JOURNALLED_CALL.dump_json(self, exclude=done_with).decode()
        return CallRow(self.call_id, self.last_seq, self.state == CLOSED, record)

    @classmethod
    def from_row(cls, row: CallRow) -> CallState:
        """The inverse of ``row``. Raises pydantic's ``ValidationError`` for an invalid record."""
        kept = JOURNALLED_CALL.validate_json(row.record)
        call = cls(**{name: getattr(kept, name) for name in _KEPT})
        call.last_seq, call.listed = row.last_seq, clock.monotonic()
        if call.cancel_reason is not None and call.state != CLOSED:
            call.cancel = Repeat(call.since)
        call.wake()
        return call

    @classmethod
    def read(cls, row: CallRow) -> CallState | None:
        """The call of a row of the journal; None, with a log entry, for an invalid record."""
        try:
            return cls.from_row(row)
        except ValidationError as error:
            _log.warning("call %r in the journal can't be read: %s", row.call_id, first_problem(error, "it"))
            return None

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
            call.read_open(event)
        return call

    def read_open(self, event: ToolEvent) -> None:
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
