"""How an agent stood that died: what was delivered, what was open, what was in the middle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.agent.control.control import Mode
from dimos_streams.operator.messages.agent import AgentEvent, Usage


@dataclass(slots=True, kw_only=True)
class RecordedCall:
    """A call as the record knows it: one whose close was not delivered, or one that the model has no result of."""

    skill: str
    missions: tuple[str, ...]
    call_id: str = ""
    """Known once it had begun."""
    last_seq: int = 0
    """The number of the newest event that was delivered."""
    arguments: Mapping[str, Any] | None = None
    """With which it was about to begin; None if that is not known."""
    tool_call_id: str = ""
    """The model's id of what it asked for; empty where that is not the question."""
    sub: str = ""
    """The sub-mission whose model asked; empty for the agent's own."""


@dataclass(frozen=True, slots=True)
class AskedBatch:
    """The calls that one answer asked for."""

    utime: int
    calls: tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass(slots=True, kw_only=True)
class UnfinishedMission:
    """A mission that was not over."""

    id: str
    input: str
    began_utime: int = 0
    """When it began, µs since the Unix epoch; 0 where the record does not have its beginning."""
    heard: bool = False
    """Whether the input had reached the conversation."""
    ended: str = ""
    """Why it was ended early: all that is left to do of it is to end its calls."""
    in_turn: bool = False
    """Whether the model was in the middle of a turn, or was about to begin one."""
    spent: Usage = field(default_factory=Usage)
    reason: str = ""
    why: str = ""
    text: str = ""
    """The text of its newest turn."""
    failed_call: str = ""
    """The text of the first of its calls that failed."""
    stopped: str = ""
    """Why an operator's stop of the robot has ended one of its calls, or empty."""
    cancelled_call: str = ""
    """Which call, and why, if what became of its newest call is that somebody else has cancelled it."""
    asked: list[AskedBatch] = field(default_factory=list)
    """The newest answers that asked for calls since the operator's last input, those of sub-missions too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedAbort:
    """An abort that was under way."""

    reason: str
    rollback: bool
    others: bool
    """Whether others' calls were to be ended as well."""


@dataclass(slots=True, kw_only=True)
class OperatorWishes:
    """The operator's settings, which hold for the new process too."""

    mode: Mode = Mode.RUNNING
    model: str = ""
    """Empty for that of the config."""
    skills: dict[str, bool] = field(default_factory=dict)
    """Those that were enabled or disabled."""
    watched: bool | None = None
    """Whether a console was there; None where the record says nothing of it."""


@dataclass(slots=True, kw_only=True)
class Resumption:
    """All that a new process needs to go on."""

    events: list[AgentEvent]
    """The events of the newest missions and of those that were not over, in order."""
    offset: int
    """In the journal: all up to it is recorded."""
    missions: list[UnfinishedMission]
    calls: list[RecordedCall]
    """Those whose close was not delivered."""
    closed: list[str]
    """Ids of the newest calls whose close was delivered."""
    unanswered: list[RecordedCall]
    """Those that a model asked for, and that have no result."""
    wishes: OperatorWishes
    lessons: dict[str, list[str]]
    """The lessons learnt from each model's server."""
    abort: UnfinishedAbort | None
    """None if none was under way."""

    @property
    def last_number(self) -> int:
        """The number of the newest event."""
        return self.events[-1].number if self.events else 0
