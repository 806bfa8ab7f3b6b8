"""The plan of a run: all of it follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.testing import Faults

PARTS = ("bridge", "rover", "eyes", "gate", "agent")
ORDERS = (
    *("say",) * 8,
    *("say now", "say stop", "forget", "typing", "cancel call", "cancel mission", "cancel all", "set"),
    *("pause", "pause", "resume", "resume", "step on", "step once", "step once", "step off"),
    *("abort", "rollback", "undo", "undo", "stop robot", "release robot", "release robot"),
    *("approve", "approve", "approve", "change", "reject", "delete", "amend"),
    *("disable", "enable", "enable", "model", "operator go", "operator follow"),
)
INCIDENTS = ("crash", "crash", "restart", "partition", "partition", "cut", "lose answers", "deaf gateway")
_NEAR_S = (0.0, 0.001, 0.05, 0.3, 1.0)


@dataclass(frozen=True)
class Step:
    """An order, or an incident that strikes a part for ``for_s``."""

    at: float
    what: str
    part: str = ""
    for_s: float = 0.0
    dice: float = 0.0


@dataclass(frozen=True)
class Plan:
    """One run."""

    seed: int
    faults: Faults
    steps: tuple[Step, ...]
    until_s: float
    config: dict[str, Any] = field(default_factory=dict)
    """That of the agent."""


def plan(seed: int) -> Plan:
    """Return the run of a seed."""
    rng = random.Random(f"plan {seed}")
    until_s = rng.choice((6.0, 12.0, 20.0, 40.0))
    is_quiet = rng.random() < 0.15
    orders = _orders(rng, until_s)
    incidents = [] if is_quiet else _incidents(rng, orders, until_s)
    steps = sorted([*orders, *incidents], key=lambda step: step.at)
    return Plan(seed, Faults() if is_quiet else _faults(rng), tuple(steps), until_s, _config(rng))


def _orders(rng: random.Random, until_s: float) -> list[Step]:
    orders = [Step(rng.uniform(0.0, 1.0), "say")]
    for _ in range(rng.choice((8, 16, 32, 48))):
        near = orders[-1].at + rng.choice(_NEAR_S)
        at = near if rng.random() < 0.5 and near < until_s else rng.uniform(0.2, until_s)
        orders.append(Step(round(at, 3), rng.choice(ORDERS), dice=rng.random()))
    return orders


def _incidents(rng: random.Random, orders: list[Step], until_s: float) -> list[Step]:
    incidents = []
    for _ in range(rng.choice((1, 3, 6, 10))):
        near = rng.choice(orders).at + rng.choice((-0.01, *_NEAR_S))
        at = near if rng.random() < 0.5 and 0 < near < until_s else rng.uniform(0.5, until_s)
        for_s = rng.choice((0.05, rng.uniform(0.05, 0.5), rng.uniform(0.5, 3.0), rng.uniform(3.0, 40.0)))
        what, part = rng.choice(INCIDENTS), rng.choice((*PARTS, "agent", "agent"))
        incidents.append(Step(round(at, 3), what, part, round(for_s, 3), rng.random()))
    return incidents


def _faults(rng: random.Random) -> Faults:
    return Faults(
        loss=rng.choice((0.0, 0.05, 0.1, 0.3)),
        duplication=rng.choice((0.0, 0.1, 0.3)),
        delay_s=rng.choice(((0.0, 0.0), (0.0, 0.01), (0.0, 0.1), (0.0, 0.5))),
        affects=_is_affected,
    )


def _is_affected(channel: str) -> bool:
    """Return whether faults strike a channel: none do between the gate and the motors, which is looked at."""
    return not channel.startswith("/cmd_vel")


def _config(rng: random.Random) -> dict[str, Any]:
    return {
        "model": "openai:brain",
        "answer_timeout_s": rng.choice((1.0, 10.0)),
        "plan": {"motions": rng.choice((None, 2))},
        "agents": {"helper": {"description": "helps", "prompt": "Help.", "skills": ["look", "go", "grab"]}},
        "limits": {"deadline_s": rng.choice((None, None, 5.0))},
        "approval": {"timeout_s": rng.choice((None, 3.0))},
    }
