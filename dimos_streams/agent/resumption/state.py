"""The state of an agent that died: what was delivered, what was open, what was in the middle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.missions.end_state import EndState
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.operator.messages.agent import AgentEvent, Usage
from dimos_streams.operator.robot_orders import NO_ORDER


@dataclass(slots=True, kw_only=True)
class RecordedCall:
    """A call as the record knows it: one whose close was not delivered, or one for which the model has no result."""

    skill: str
    missions: tuple[str, ...]
    call_id: str = ""
    """The call's id, known once it had begun; empty before."""
    last_seq: int = 0
    """The number of the newest event that was delivered."""
    arguments: Mapping[str, Any] | None = None
    """The arguments with which it was about to begin, or None if they are not known."""
    tool_call_id: str = ""
    """The model's id of what it asked for; empty where that does not matter."""
    sub: str = ""
    """The sub-mission whose model asked; empty for the agent's own."""
    agents: tuple[str, ...] = ()
    """The sub-agents whose lists it is held to, the outermost first."""


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
    """The time when it began, in µs since the Unix epoch, by the clock as it is set now where that can be known; 0 if
    the record does not have its beginning."""
    known_orders: frozenset[int] = frozenset()
    """The numbers of the orders to stop or release the robot that the agent knew when it began."""
    heard: bool = False
    """True if the input had reached the conversation."""
    end_state: EndState = field(default_factory=EndState)
    """Its state. If it was ended early, all that is left to do for it is to end its calls."""
    in_turn: bool = False
    """True if the model was in the middle of a turn, or was about to begin one."""
    spent: Usage = field(default_factory=Usage)
    asked: list[AskedBatch] = field(default_factory=list)
    """The newest answers that asked for calls since the operator's last input, those of sub-missions too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedAbort:
    """An abort that was under way."""

    reason: str
    rollback: bool
    others: bool
    """True if others' calls were to be ended as well."""


@dataclass(slots=True, kw_only=True)
class OperatorSettings:
    """The operator's settings, which hold for the new process too."""

    mode: Mode = Mode.RUNNING
    paused_for: str = ""
    """The reasons of the pause that lasts, the newest first."""
    model: str = ""
    """The name of the model; empty for that of the config."""
    skills: dict[str, bool] = field(default_factory=dict)
    """The skills that were enabled (True) or disabled (False), by name."""
    outdated: bool = False
    """True if something that was set last could not be written down, whatever the others say."""
    watched: bool | None = None
    """True if a console was there; None if the record says nothing of it."""


@dataclass(slots=True, kw_only=True)
class Resumption:
    """The state from which a new process goes on."""

    events: list[AgentEvent]
    """The events of the newest missions and of those that were not over, in order."""
    offset: int
    """The offset of the journal up to which everything is recorded."""
    missions: list[UnfinishedMission]
    calls: list[RecordedCall]
    """The calls whose close was not delivered."""
    closed: dict[str, tuple[str, ...]]
    """Ids of the newest calls whose close was delivered, each with the sub-agents whose lists it was held to."""
    unanswered: list[RecordedCall]
    """The calls that a model asked for, and that have no result."""
    settings: OperatorSettings
    lessons: dict[str, list[str]]
    """The lessons learnt from each model's server."""
    abort: UnfinishedAbort | None
    """The abort that was under way, or None if there was none."""

    @property
    def said_stop(self) -> int:
        """The number of the newest stop that was said to the agent, as far as it is among the events."""
        aborts = map(EventKind.ABORT.data_of, reversed(self.events))
        said = (abort.get("said_stop", NO_ORDER) for abort in aborts if abort and abort["phase"] == "start")
        return next(filter(None, said), NO_ORDER)

    @property
    def begun(self) -> frozenset[str]:
        """The ids of the missions whose beginning is among the events."""
        starts = map(EventKind.MISSION_START.data_of, self.events)
        return frozenset(start["id"] for start in starts if start is not None)

    @property
    def orders(self) -> frozenset[str]:
        """The ids of the calls that have given the orders that are among the events."""
        orders = map(EventKind.ORDER.data_of, self.events)
        return frozenset(order["id"] for order in orders if order is not None)

    @property
    def last_number(self) -> int:
        """The number of the newest event; 0 if there is none."""
        return self.events[-1].number if self.events else 0
