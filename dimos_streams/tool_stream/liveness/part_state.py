"""What the part of a run on one machine says of itself in its heartbeats."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

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
