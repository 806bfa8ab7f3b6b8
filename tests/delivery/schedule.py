"""The schedule of one simulated run: all of it follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from dimos_streams.skill import OnDuplicate
from dimos_streams.testing import Faults

PARTS = ("walker", "watcher", "bridge")
SKILLS = ("drive", "patrol", "look", "talk", "chain", "hold")

FAULTS_END_S = 3.0
"""From then on every message arrives and every part runs."""


Kind = Literal["crash", "partition", "cut", "crash agent", "crash reader"]
KINDS: tuple[Kind, ...] = ("crash", "crash", "partition", "cut", "crash agent", "crash reader")


@dataclass(frozen=True)
class PlannedCall:
    """A call that one of the callers makes."""

    at: float
    caller: Literal["agent", "script"]
    skill: str
    to: int
    pause_ms: int
    fail: bool
    on_duplicate: OnDuplicate | None
    lease_wait_s: float
    cancel_after: float | None
    repeat_after: float
    """When the script, which may have missed the answer, asks once more with the same key."""


@dataclass(frozen=True)
class Incident:
    """Something breaks at ``at`` and is whole again ``for_s`` later."""

    at: float
    kind: Kind
    part: str
    for_s: float
    journal_lost: bool = False


@dataclass(frozen=True)
class Schedule:
    """One run."""

    seed: int
    faults: Faults
    calls: tuple[PlannedCall, ...]
    incidents: tuple[Incident, ...]

    @property
    def journal_lost(self) -> bool:
        """Whether the bridge loses its journal on the way."""
        return any(incident.journal_lost for incident in self.incidents)


def schedule(seed: int) -> Schedule:
    """The run of a seed."""
    rng = random.Random(f"schedule {seed}")
    faults = Faults(
        loss=rng.choice((0.0, 0.1, 0.2, 0.3)),
        duplication=rng.choice((0.0, 0.1, 0.3, 0.3)),
        delay_s=(0.0, rng.choice((0.0, 0.002, 0.05, 0.05))),
    )
    calls = tuple(_call(rng) for _ in range(rng.randint(2, 6)))
    incidents = tuple(_incident(rng) for _ in range(rng.randint(0, 5)))
    return Schedule(seed, faults, calls, incidents)


def _call(rng: random.Random) -> PlannedCall:
    return PlannedCall(
        at=rng.uniform(0.3, FAULTS_END_S),
        caller=rng.choice(("agent", "script")),
        skill=rng.choice(SKILLS),
        to=rng.choice((0, 0, 1, 3, 8, 8, 20, 60)),
        pause_ms=rng.choice((0, 5, 20, 40)),
        fail=rng.random() < 0.1,
        on_duplicate=rng.choice((None, None, "allow", "replace", "reject")),
        lease_wait_s=rng.choice((0.0, 0.0, 1.0)),
        cancel_after=rng.uniform(0.0, 1.0) if rng.random() < 0.3 else None,
        repeat_after=rng.uniform(0.0, 0.5),
    )


def _incident(rng: random.Random) -> Incident:
    kind = rng.choice(KINDS)
    part = rng.choice(PARTS)
    at = rng.uniform(0.3, FAULTS_END_S - 0.1)
    for_s = rng.choice((rng.uniform(0.05, 0.5), rng.uniform(0.5, 2.5)))
    lost = kind == "crash" and part == "bridge" and rng.random() < 0.2
    return Incident(at, kind, part, min(for_s, FAULTS_END_S - at), lost)
