"""The part of a call's state that a journal keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from dimos_streams.skill import OnLoss
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallPhase
from dimos_streams.tool_stream.overtaken import OrderKind

REQUESTED: Final = "requested"
OPEN: Final = "open"
CLOSED: Final = "closed"


@dataclass(slots=True, eq=False)
class JournalledCall:
    """The part of a call's state that outlives the bridge. The first fields are those of a ``CallView``."""

    call_id: str
    skill: str
    module: str
    caller: str
    parent: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    state: CallPhase = REQUESTED
    outcome: Outcome | None = None
    answer: str | None = None
    text: str = ""
    result: Any = None
    last_seq: int = 0
    resources: tuple[str, ...] = ()
    on_loss: OnLoss = "stop"
    robot: Annotated[str | None, Field(exclude_if=lambda robot: robot is None)] = None
    requested_utime: int = 0
    closed_utime: int | None = None
    to_end: Annotated[str | None, Field(exclude_if=lambda to_end: to_end is None)] = None

    # Only the bridge knows the rest.

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
    overruled: dict[str, OrderKind] = field(default_factory=dict)
    """The orders since it was asked for, by the robot that they are for (see ``overruling``), which also hold for the
    calls that it begins."""
    begin_by: Annotated[float | None, Field(exclude_if=lambda begin_by: begin_by is None)] = None
    """The latest time at which it may begin, on ``clock.steady``; None if there is no limit."""


JOURNALLED_CALL = TypeAdapter(JournalledCall)
"""Reads and writes the JSON that the journal keeps of a call."""
