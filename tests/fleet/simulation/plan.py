"""The plan of a run: all of it follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from dimos_streams.testing import Faults

ROBOTS = ("r1", "r2")
ORDERS: tuple[str, ...] = (
    *("call",) * 12,
    *("again",) * 10,
    "stop",
    "stop",
    *("release",) * 4,
    *("release seen",) * 2,
)
ORDERS += ("cancel all", "cancel all", "cancel", "cancel")
INCIDENTS = (
    *("crash bridge",) * 5,
    *("crash hub",) * 3,
    *("restart bridge", "restart hub", "crash rover", "crash run", "crash run", "restart run", "replace"),
    *("cut", "cut", "cut", "away", "database", "disk", "copy", "copy", "put back", "put back", "token"),
    *("clock hub", "clock robots"),
)
_NEAR_S = (0.0, 0.001, 0.05, 0.3, 1.0)


@dataclass(frozen=True)
class Step:
    """An order, or an incident that strikes a robot or the hub for ``for_s``."""

    at: float
    what: str
    robot: str
    for_s: float
    dice: float


@dataclass(frozen=True)
class LineFaults:
    """The faults of the way between robots and their hub."""

    loss: float = 0.0
    """Share of the requests that get lost, and of the answers."""
    delay_s: float = 0.0
    """Longest time that a request takes."""
    held_s: float = 0.0
    """Longest time for which a command is held up on its way."""
    unnoticed_s: float = 0.0
    """Longest time until a hub notices that a robot has left."""
    database_s: float = 0.0
    """Longest time that the hub's database takes."""


@dataclass(frozen=True)
class Plan:
    """One run."""

    seed: int
    faults: Faults
    line: LineFaults
    steps: tuple[Step, ...]
    until_s: float


def plan(seed: int, *, is_short: bool = False) -> Plan:
    """Return the run of a seed."""
    rng = random.Random(f"fleet {seed}")
    until_s = 3.0 if is_short else rng.choice((6.0, 15.0, 30.0, 45.0))
    orders = [_step(rng, ORDERS, until_s) for _ in range(round(until_s * rng.choice((1.0, 2.0, 3.0))))]
    incidents = [
        _incident(rng, orders, until_s)
        for _ in range(round(until_s * (2.0 if is_short else rng.choice((0.1, 0.3, 0.6)))))
    ]
    steps = sorted([*orders, *incidents], key=lambda step: step.at)
    return Plan(seed, _faults(rng), _line(rng), tuple(steps), until_s)


def _step(rng: random.Random, kinds: tuple[str, ...], until_s: float) -> Step:
    for_s = rng.choice((0.05, rng.uniform(0.05, 0.5), rng.uniform(0.5, 3.0), rng.uniform(3.0, 8.0)))
    at = round(rng.uniform(0.0, until_s), 3)
    return Step(at, rng.choice(kinds), rng.choice(ROBOTS), round(for_s, 3), rng.random())


def _incident(rng: random.Random, orders: list[Step], until_s: float) -> Step:
    found = _step(rng, INCIDENTS, until_s)
    near = rng.choice(orders)
    if rng.random() < 0.5:
        return found
    return Step(round(near.at + rng.choice(_NEAR_S), 3), found.what, near.robot, found.for_s, found.dice)


def _faults(rng: random.Random) -> Faults:
    return Faults(
        loss=rng.choice((0.0, 0.05, 0.2)),
        duplication=rng.choice((0.0, 0.2)),
        delay_s=(0.0, rng.choice((0.0, 0.05, 0.3))),
        affects=lambda channel: not channel.startswith("/cmd_vel"),
    )


def _line(rng: random.Random) -> LineFaults:
    return LineFaults(
        loss=rng.choice((0.0, 0.1, 0.3)),
        delay_s=rng.choice((0.0, 0.1, 0.5, 1.5)),
        held_s=rng.choice((0.0, 0.1, 1.0)),
        unnoticed_s=rng.choice((0.0, 2.0, 20.0)),
        database_s=rng.choice((0.0, 0.1, 1.0)),
    )
