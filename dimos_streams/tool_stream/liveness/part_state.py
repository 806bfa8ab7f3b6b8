"""The state that the part of a run on one machine reports in its heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pydantic import Field, ValidationError

from dimos_streams.common.schemas.frozen_model import FrozenModel

PART = "part"
"""The topic of a module's state that says which part it speaks for, and the end of its name."""


class ClockOffset(FrozenModel):
    """The offset by which another machine's clock is ahead of that of the machine that reports it."""

    ahead_us: int
    within_us: int
    """Maximum error of the measurement, in µs: half of the fastest round trip."""


class PartState(FrozenModel):
    """The state that the part of one machine reports."""

    machine: str
    machines: tuple[str, ...]
    """The names of all machines of its blueprint."""
    blueprint: str
    digest: str
    """The digest of its blueprint: parts that have another one are of another blueprint."""
    version: str
    """The version of dimos_streams."""
    modules: tuple[str, ...] = ()
    """The names of the part's modules; empty if there is no room for them."""
    ready: bool = False
    """True if all modules of the part are ready."""
    clocks: dict[str, ClockOffset] = Field(default_factory=dict)
    """The clock offsets by machine, as far as they were measured."""


class HeardModule(Protocol):
    """A module as its heartbeats show it, here or at a bridge."""

    @property
    def name(self) -> str: ...
    @property
    def alive(self) -> bool: ...
    @property
    def state(self) -> Mapping[str, Any]: ...


def part_name(machine: str) -> str:
    """Return the name of the module that speaks for the part of a machine."""
    return f"{machine}/{PART}"


def part_state(module: HeardModule) -> PartState | None:
    """Return the state of the part for which a module speaks, or None if it speaks for none."""
    if module.name.rpartition("/")[2] != PART or PART not in module.state:
        return None
    try:
        return PartState.model_validate(module.state[PART])
    except ValidationError:
        return None


def absent_machines(modules: Iterable[HeardModule]) -> list[str]:
    """Return the machines that a part counts on and whose own part is not heard, or not ready."""
    states = [(module.alive, state) for module in modules if (state := part_state(module)) is not None]
    there = {state.machine for alive, state in states if alive and state.ready}
    wanted = dict.fromkeys(machine for alive, state in states if alive for machine in state.machines)
    return [machine for machine in wanted if machine not in there]
