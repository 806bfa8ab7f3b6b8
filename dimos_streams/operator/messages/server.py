"""The messages of ``WS /monitor`` that the bridge sends to its watchers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.messages.run import MonitorChange, MonitorSnapshot
from dimos_streams.tool_stream.event import Outcome


class _ServerMessage(FrozenModel):
    seq: int
    """Counts 1..n on a connection."""


class SnapshotMessage(_ServerMessage):
    """The whole state: the first message, and the one after a ``gap``."""

    type: Literal["snapshot"] = "snapshot"
    utime: int
    snapshot: MonitorSnapshot


class ChangeMessage(_ServerMessage):
    """The fields that differ from the last ``snapshot`` or ``change``. All events in them were sent before."""

    type: Literal["change"] = "change"
    utime: int
    change: MonitorChange


class EventMessage(_ServerMessage):
    """Something that happened in an agent."""

    type: Literal["event"] = "event"
    event: AgentEvent


class CallEvent(FrozenModel):
    """An event of a tool stream."""

    utime: int
    call_id: str
    seq: int
    type: Literal["open", "update", "progress", "close"]
    module: str
    skill: str
    caller: str
    text: str
    data: dict[str, Any]


class CallMessage(_ServerMessage):
    """An event of a call's tool stream; its fields are those of ``GET /tool_streams``."""

    type: Literal["call"] = "call"
    offset: int
    """Its offset in the journal, which leads to what came before it (``GET /events``) and after it."""
    event: CallEvent


class GapMessage(_ServerMessage):
    """Messages were dropped because the client read too slowly. A ``snapshot`` follows."""

    type: Literal["gap"] = "gap"
    lost: int
    """Number of messages that are missing."""


class ReplyMessage(_ServerMessage):
    """A command was carried out."""

    type: Literal["reply"] = "reply"
    id: str | int | None
    """The command's."""
    command: str
    call_id: str
    """The id of the operator skill's call, or of the call that is cancelled."""
    outcome: Outcome | None
    """None while it goes on, as ``say`` does."""
    text: str
    result: Any = None


CommandProblem = Literal[
    "bad-json", "bad-command", "unknown-agent", "unknown-call", "conflict", "refused", "unavailable", "internal"
]


class ErrorMessage(_ServerMessage):
    """A command was not carried out, or what came was not a command. The connection stays."""

    type: Literal["error"] = "error"
    id: str | int | None
    problem: CommandProblem
    text: str
    errors: dict[str, str] = Field(default_factory=dict)
    """Fields of the command with what is wrong with them."""
    call_id: str = ""
    """The id of the call that the command began, by which its fate can be read; empty if it began none."""


ServerMessage = Annotated[
    SnapshotMessage | ChangeMessage | EventMessage | CallMessage | GapMessage | ReplyMessage | ErrorMessage,
    Field(discriminator="type"),
]
