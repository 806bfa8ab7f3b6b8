"""The data of events about what operators do, are asked, and are told."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from dimos_streams.agent.record.event_data.base import EventData, Lenient, TextData


class OrderData(EventData):
    """An operator's order is about to be carried out."""

    id: str
    """The call that gives it."""
    order: Lenient[str]


class NoteData(TextData):
    """Something for people: about a call, in a dialogue with the operator, what was learnt of a model's server, or
    that a stop of the robot came after a mission was asked for."""

    skill: NotRequired[str]
    call_id: NotRequired[str]
    foreground: NotRequired[bool]
    model: NotRequired[str]
    lesson: NotRequired[str]
    stopped: NotRequired[bool]


class ModeData(EventData):
    """The agent is paused, or goes on."""

    was: str
    reason: Lenient[str]


class HoldData(TextData):
    """The gates' confirmation has changed while the robot is to be still."""

    held: Lenient[list[str]]
    not_held: Lenient[list[dict[str, Any]]]


class StepOn(EventData):
    """Step mode begins."""

    was: str
    phase: Literal["on"]


class StepWaits(EventData):
    """A call waits for a step."""

    phase: Literal["waits"]
    skill: Lenient[str]
    arguments: Lenient[dict[str, Any]]
    tool_call_id: Lenient[str]
    parent: Lenient[str]
    waiting: Lenient[str]
    """The id by which a step names it."""


class StepGo(EventData):
    """A step lets a call go."""

    phase: Literal["go"]
    skill: Lenient[str]
    tool_call_id: Lenient[str]
    waiting: Lenient[str]


class ConsoleData(EventData):
    """A console has come, or the last one has gone."""

    present: bool


class AbortStart(EventData):
    """An abort begins."""

    phase: Literal["start"]
    reason: str
    rollback: bool
    others: bool
    said_stop: NotRequired[Lenient[int]]


class AbortEnd(EventData):
    """An abort is over."""

    phase: Literal["end"]
    held: Lenient[list[str]]
    not_held: Lenient[list[dict[str, Any]]]
    reason: str
    cancelled: list[str]
    unfinished: Lenient[list[str]]
    stays_paused: Lenient[bool]
    undone: Lenient[list[dict[str, Any]]]


class ForegroundData(EventData):
    """A dialogue with the operator that nothing interrupts begins or ends."""

    held: Lenient[bool]


class ApprovalData(TypedDict):
    """The part of an ``ApprovalView`` that whoever goes on from a record needs."""

    id: str
    skill: str
    module: str
    state: str
    arguments: dict[str, Any]


class ApprovalCreatedData(EventData):
    """An operator is asked."""

    approval: ApprovalData
    text: Lenient[str]


class ApprovalChangedData(EventData):
    """An operator has changed the arguments."""

    approval: Lenient[ApprovalData]


class ApprovalDecidedData(EventData):
    """An approval is decided, or nobody did in time."""

    approval: ApprovalData
    why: Lenient[str]


class PlanData(EventData):
    """A plan was made, changed, submitted, approved, or is void."""

    plan: Lenient[dict[str, Any]]


class FreeMotionData(EventData):
    """A motion begins without a plan, or did not begin after all."""

    skill: Lenient[str]
    motions: Literal[1, -1]


class SkillSetData(EventData):
    """An operator has enabled or disabled a skill."""

    skill: str
    enabled: bool
