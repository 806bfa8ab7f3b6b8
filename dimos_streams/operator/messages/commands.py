"""The messages of ``WS /monitor`` that its clients send: commands of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from dimos_streams.common.names import MAX_NAME
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.operator.messages.message import MAX_TEXT, Name, OptionalName, Text


def id_of(given: object) -> str | int | None:
    """The id by which a client knows what it has sent; None if that has none, or none that could come back."""
    try:
        return _as_id(given.get("id")) if isinstance(given, Mapping) else None
    except ValueError:
        return None


def _as_id(value: object) -> str | int | None:
    # True is an integer to Python, and would come back as 1.
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and len(value) <= MAX_NAME:
        return value
    raise ValueError(f"it must be a text of at most {MAX_NAME} characters, a whole number, or null")


CommandId = Annotated[Annotated[str, Field(max_length=MAX_NAME)] | int | None, BeforeValidator(_as_id)]


class _CommandBase(JsonModel):
    id: CommandId = None
    """Comes back in the reply."""
    agent: OptionalName = ""
    """The agent module's name, or its namespace; may be left out where there is only one."""


class Say(_CommandBase):
    """Tell the agent something. The reply comes when the text has reached it; the mission goes on."""

    command: Literal["say"]
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    now: bool = False
    """Cut the present answer of the model, and let the text be the next that it hears."""


class Pause(_CommandBase):
    """Hold the robot still and begin nothing new."""

    command: Literal["pause"]
    reason: Text = ""


class Resume(_CommandBase):
    """Go on after a pause, and leave step mode."""

    command: Literal["resume"]
    reason: Text = ""


class Step(_CommandBase):
    """Step mode on or off, or let one call pass."""

    command: Literal["step"]
    mode: Literal["on", "off", "once"] = "once"
    waiting: Name | None = None
    """The id of the waiting call that was seen: ``once`` is for no other one. Without it, the oldest is meant."""


class Abort(_CommandBase):
    """End the missions and their calls; with ``rollback`` take back what can be."""

    command: Literal["abort"]
    rollback: bool = False
    reason: Text = ""


class Undo(_CommandBase):
    """Take back the newest calls, newest first."""

    command: Literal["undo"]
    count: Annotated[int, Field(ge=1)] = 1


class Forget(_CommandBase):
    """Begin a new conversation; the record stays."""

    command: Literal["forget"]


class _OfApproval(_CommandBase):
    approval: Name
    revision: Annotated[int, Field(ge=1)] | None = None
    """The one that was seen: of an approval that an operator has changed since, it is refused. Without it, whatever
    waits is meant."""


class Decide(_OfApproval):
    """Decide on an approval. ``arguments`` replace those that the model asked for."""

    command: Literal["decide"]
    decision: Literal["approve", "reject", "delete"]
    arguments: dict[str, Any] | None = None
    reason: Text = ""


class Amend(_OfApproval):
    """Change the arguments of a pending approval without deciding."""

    command: Literal["amend"]
    arguments: dict[str, Any]


class SetSkill(_CommandBase):
    """Allow or forbid the agent the use of a skill."""

    command: Literal["set_skill"]
    skill: Name
    enabled: bool


class Cancel(JsonModel):
    """Ask a call to end."""

    command: Literal["cancel"]
    id: CommandId = None
    call_id: Name
    reason: Text = "cancelled by the operator"


AgentCommand = Say | Pause | Resume | Step | Abort | Undo | Forget | Decide | Amend | SetSkill
Command = Annotated[AgentCommand | Cancel, Field(discriminator="command")]
COMMAND_NAMES: tuple[str, ...] = tuple(
    get_args(each.model_fields["command"].annotation)[0] for each in get_args(AgentCommand | Cancel)
)
