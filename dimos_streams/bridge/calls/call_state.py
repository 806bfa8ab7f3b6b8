"""What the broker knows of calls, folded out of their events."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from dimos_streams import clock
from dimos_streams.bridge.journal.journal import CallRow
from dimos_streams.skill import OnLoss
from dimos_streams.tool_stream.event import Outcome, ToolEvent, json_text
from dimos_streams.tool_stream.gateway import CallView

REQUESTED, OPEN, CLOSED = "requested", "open", "closed"


class CallRecord(BaseModel):
    """What the journal keeps of a call for a broker that starts again."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    view: CallView
    key: str | None = None
    instance: str = ""
    cancel: str | None = None
    """The reason of a wish to end it."""
    by_agent: bool = False
    journalled: bool = True
    on_loss: OnLoss | None = None
    """What its caller said of its loss."""


@dataclass(slots=True)
class Repeat:
    """When to send a message again that nobody has reacted to; each pause is longer than the one before."""

    at: float
    pause: float = 0.1
    sent: int = 0

    def due(self, now: float, longest: float = 0.5) -> bool:
        """Whether it is time, in which case the next time is set."""
        if now < self.at:
            return False
        self.at, self.pause, self.sent = now + self.pause, min(self.pause * 1.5, longest), self.sent + 1
        return True


@dataclass(slots=True, kw_only=True)
class CallState:
    """One call while the broker remembers it."""

    call_id: str
    skill: str
    module: str
    caller: str
    parent: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    requested_utime: int = 0
    key: str | None = None
    """The idempotency key with which it was begun."""
    by_agent: bool = False
    """Whether ``caller``, who stands at the beginning of the chain, is an agent."""
    journalled: bool = True
    """Whether its events are kept and read by everybody; False for what only the bridge itself reads."""
    wish: OnLoss | None = None
    """What its caller said of its loss; it holds for the calls that it begins as well."""
    on_loss: OnLoss = "stop"
    """What is to become of it when a link is cut: the caller's wish, or what its skill states."""

    state: str = REQUESTED
    outcome: Outcome | None = None
    answer: str | None = None
    text: str = ""
    result: Any = None
    last_seq: int = 0
    closed_utime: int | None = None

    since: float = field(default_factory=clock.monotonic)
    """When it was requested, or taken over from the journal, on the loop's clock."""
    instance: str = ""
    """The start of its module in which it runs, empty until an event of it tells, or a heartbeat lists it."""
    listed: float = 0.0
    """When its module last showed that it runs it, by an event or a heartbeat, on the loop's clock."""
    request: Repeat | None = None
    cancel: Repeat | None = None
    cancel_reason: str = ""
    foreign: bool = False
    """It was begun without the broker, since that started."""
    missing_open: bool = False
    """Its ``open`` is gone, and with it what it uses; that is looked up when its skill is known."""
    closing: bool = False
    """It is being given up as lost."""
    last: ToolEvent | None = None
    _size: int = 0
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def apply(self, event: ToolEvent) -> bool:
        """Take the call's next event; whether it changed more than the newest text."""
        if event.seq > self.last_seq:
            self.last_seq = event.seq
        if not self.skill:
            # All that was known of it before was that events of it are gone.
            self.module, self.skill, self.caller = event.module or self.module, event.skill, event.caller
        self.last, self.text = event, event.text
        if event.type != "gap":  # which the receiver makes itself, of silence
            self.listed = clock.monotonic()
        milestone = event.type in ("open", "close")
        if event.instance and not self.instance:
            self.instance, milestone = event.instance, True
        if self.state == REQUESTED:
            self.state, self.request, milestone = OPEN, None, True
        if self.answer is None and event.type in ("update", "close"):
            self.answer, milestone = event.text, True
        if event.type == "close":
            self.state, self.outcome, self.closed_utime = CLOSED, event.outcome, event.utime
            self.result = event.data.get("result")
            self.cancel = None
        return milestone

    @property
    def size(self) -> int:
        """Bytes of what is remembered of it, once it is closed; its last event says the same again."""
        if self._size == 0:
            texts = (self.text, self.answer or "", json_text(self.arguments), json_text(self.result))
            self._size = 1000 + 2 * sum(map(len, texts))
        return self._size

    def wake(self) -> None:
        """Wake who waits for what has happened; after the events are safe in the journal."""
        if self.answer is not None:
            self.answered.set()
        if self.state == CLOSED:
            self.closed.set()

    def view(self) -> CallView:
        """The call as callers see it."""
        return CallView(
            call_id=self.call_id,
            skill=self.skill,
            module=self.module,
            caller=self.caller,
            parent=self.parent,
            arguments=dict(self.arguments),
            state=self.state,
            outcome=self.outcome,
            answer=self.answer,
            text=self.text,
            result=self.result,
            last_seq=self.last_seq,
            resources=self.resources,
            on_loss=self.on_loss,
            requested_utime=self.requested_utime,
            closed_utime=self.closed_utime,
        )

    def row(self) -> CallRow:
        """The call as the journal keeps it."""
        cancel = self.cancel_reason if self.cancel is not None else None
        record = CallRecord(
            view=self.view(),
            key=self.key,
            instance=self.instance,
            cancel=cancel,
            by_agent=self.by_agent,
            journalled=self.journalled,
            on_loss=self.wish,
        )
        return CallRow(self.call_id, self.last_seq, self.state == CLOSED, record.model_dump_json())

    @classmethod
    def from_row(cls, row: CallRow) -> CallState:
        """The inverse of ``row``. Raises pydantic's ``ValidationError`` for a record that is none."""
        record = CallRecord.model_validate_json(row.record)
        view = record.view
        state = cls(
            call_id=row.call_id,
            skill=view.skill,
            module=view.module,
            caller=view.caller,
            parent=view.parent,
            arguments=view.arguments,
            resources=view.resources,
            requested_utime=view.requested_utime,
            key=record.key,
            by_agent=record.by_agent,
            journalled=record.journalled,
            wish=record.on_loss,
            on_loss=view.on_loss,
            state=view.state,
            outcome=view.outcome,
            answer=view.answer,
            text=view.text,
            result=view.result,
            last_seq=row.last_seq,
            closed_utime=view.closed_utime,
            instance=record.instance,
            listed=clock.monotonic(),
        )
        if record.cancel is not None and state.state != CLOSED:
            state.cancel, state.cancel_reason = Repeat(state.since), record.cancel
        state.wake()
        return state

    @classmethod
    def from_event(cls, event: ToolEvent) -> CallState:
        """A call that was begun without the broker, at its first event. What is not as it should be is left out."""
        arguments, resources, parent = (event.data.get(name) for name in ("arguments", "resources", "parent"))
        on_loss: OnLoss = "continue" if event.data.get("on_loss") == "continue" else "stop"
        return cls(
            call_id=event.call_id,
            skill=event.skill,
            module=event.module,
            caller=event.caller,
            parent=parent if isinstance(parent, str) else "",
            arguments=arguments if isinstance(arguments, dict) else {},
            resources=tuple(use for use in resources if isinstance(use, str)) if isinstance(resources, list) else (),
            on_loss=on_loss,
            requested_utime=event.utime,
            missing_open=event.type != "open",
        )


KEEP_CLOSED_BYTES = 4 * 1024 * 1024
"""Of the texts, arguments and results of closed calls; those that are forgotten for it are in the journal."""


class Calls:
    """The calls that the broker remembers: all open ones and the newest closed ones."""

    def __init__(self, keep_closed: int = 1000) -> None:
        self._keep_closed = keep_closed
        self._closed_bytes = 0
        self._open: dict[str, CallState] = {}
        self._closed: OrderedDict[str, CallState] = OrderedDict()

    def __iter__(self) -> Iterator[CallState]:
        """Oldest first."""
        known = [*self._closed.values(), *self._open.values()]
        return iter(sorted(known, key=lambda call: call.requested_utime))

    def get(self, call_id: str) -> CallState | None:
        """One call, None if it is not remembered."""
        return self._open.get(call_id) or self._closed.get(call_id)

    def add(self, call: CallState) -> None:
        """Remember a call."""
        if call.state == CLOSED:
            self._closed[call.call_id] = call
            self._closed_bytes += call.size
            self._forget()
        else:
            self._open[call.call_id] = call

    def close(self, call: CallState) -> None:
        """Put a call that has closed among the closed ones."""
        self._open.pop(call.call_id, None)
        self.add(call)

    @property
    def open(self) -> list[CallState]:
        """All that are not closed, oldest first."""
        return list(self._open.values())

    def _forget(self) -> None:
        while len(self._closed) > self._keep_closed or self._closed_bytes > KEEP_CLOSED_BYTES:
            self._closed_bytes -= self._closed.popitem(last=False)[1].size
