"""The state of a run, as ``status`` shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from dimos_streams.cli.bridge_client.answers import BroadcastCounts, HubLinkState, ReceiverCounts
from dimos_streams.operator.messages.stop import GoingOn, StoppedRobots
from dimos_streams.runtime.registry import ProcessRecord
from dimos_streams.tool_stream.liveness.part_state import ClockOffset


@dataclass(frozen=True, kw_only=True)
class NoBridge:
    """The state of the bridge of a run that has none which could be asked."""

    url: None = None
    status: Literal["none"] = "none"


@dataclass(frozen=True, kw_only=True)
class UnreachableBridge:
    """The state of a bridge that does not answer."""

    url: str
    status: Literal["unreachable"] = "unreachable"
    problem: str


@dataclass(frozen=True, kw_only=True)
class EventCounts:
    """The counts of a bridge's events, and the leases that it has given."""

    offset: int
    leases: Mapping[str, str]
    broadcast: BroadcastCounts
    receiver: ReceiverCounts


@dataclass(frozen=True, kw_only=True)
class AnsweringBridge:
    """The state of a bridge, as it says itself."""

    url: str
    status: str
    open_calls: int
    lost: tuple[str, ...]
    stopped: StoppedRobots
    not_ending: tuple[GoingOn, ...]
    hub: HubLinkState | None
    counts: EventCounts


@dataclass(frozen=True, kw_only=True)
class ModuleState:
    """The state of a module, as the run's bridge knows it."""

    name: str
    health: str = "unknown"
    alive: bool | None = None
    """None if no bridge knows the module."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """The state that the module reports of itself."""


@dataclass(frozen=True, kw_only=True)
class MachineState:
    """The state of the part of a run that another machine runs."""

    name: str
    problem: str
    """The reason why it is not ready; empty if it is."""
    clock: ClockOffset | None
    modules: tuple[ModuleState, ...]


@dataclass(frozen=True, kw_only=True)
class ProcessState(ProcessRecord):
    """The state of a process of a run, and what it has taken of the machine."""

    cpu_s: float | None
    """Seconds of processors since it began; None if there is no process."""
    memory_bytes: int | None
    """Its memory now, with what it shares with others; None if there is no process."""


@dataclass(frozen=True, kw_only=True)
class RunState:
    """The state of a run that lives, or of the part of it that this machine runs."""

    run_id: str
    blueprint: str
    pid: int
    supervisor: Literal["ready", "suspended"]
    up_s: float
    bus: str
    machine: str | None
    machines: tuple[MachineState, ...]
    """The other machines' parts."""
    run_dir: str
    disk: str
    """``"ok"``, or the reason why nothing can be written into ``run_dir``."""
    bridge: AnsweringBridge | UnreachableBridge | NoBridge
    processes: tuple[ProcessState, ...]
    modules: tuple[ModuleState, ...]


def json_form(states: Sequence[RunState]) -> Any:
    """Return states in the form of ``status --json``."""
    return to_jsonable_python(states)
