"""What the part of a run on one machine says of itself in its heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

PART = "part"
"""The topic of a module's state that says which part it speaks for, and the end of its name."""


class ClockOffset(BaseModel):
    """How far another machine's clock is ahead of the one of the machine that says so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ahead_us: int
    within_us: int
    """The measurement is off by so much at most: half of the fastest round trip."""


class PartState(BaseModel):
    """What the part of one machine says of itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: str
    machines: tuple[str, ...]
    """All machines of its blueprint."""
    blueprint: str
    digest: str
    """Parts that have another one are of another blueprint."""
    version: str
    """Of dimos_streams."""
    modules: tuple[str, ...] = ()
    """Those of the part, as far as there is room for their names."""
    ready: bool = False
    """Whether all modules of the part are ready."""
    clocks: dict[str, ClockOffset] = Field(default_factory=dict)
    """By machine, as far as it was measured."""


class Heard(Protocol):
    """A module as its heartbeats show it, here or at a bridge."""

    @property
    def name(self) -> str: ...
    @property
    def alive(self) -> bool: ...
    @property
    def state(self) -> Mapping[str, Any]: ...


def part_name(machine: str) -> str:
    """The name of the module that speaks for the part of a machine."""
    return f"{machine}/{PART}"


def part_state(module: Heard) -> PartState | None:
    """What the part says of itself for which a module speaks, None if it speaks for none."""
    if module.name.rpartition("/")[2] != PART or PART not in module.state:
        return None
    try:
        return PartState.model_validate(module.state[PART])
    except ValidationError:
        return None


def absent_machines(modules: Iterable[Heard]) -> list[str]:
    """The machines that a part counts on and whose own part is not heard, or not ready."""
    states = [(module.alive, state) for module in modules if (state := part_state(module)) is not None]
    there = {state.machine for alive, state in states if alive and state.ready}
    wanted = dict.fromkeys(machine for alive, state in states if alive for machine in state.machines)
    return [machine for machine in wanted if machine not in there]
