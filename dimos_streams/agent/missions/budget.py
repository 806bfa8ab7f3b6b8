"""The budget of missions: whether they have used more than they may, and how deep they may be in others."""

from __future__ import annotations

from collections.abc import Sequence

from dimos_streams.agent.missions.limits import LoopLimits
from dimos_streams.agent.missions.mission import Mission, with_parents
from dimos_streams.errors import SkillError


def over_budget(missions: Sequence[Mission], limits: LoopLimits) -> tuple[Mission, str] | None:
    """Return a mission that has used more than it may, and ``max_tokens`` or ``max_cost``, or None if there is none.

    It is one of these missions or of those that they are part of, the outermost if several are over.
    """
    for mission in reversed(with_parents(missions)):
        if limits.max_tokens is not None and mission.spent.tokens > limits.max_tokens:
            return mission, "max_tokens"
        if limits.max_cost is not None and (mission.spent.cost or 0.0) > limits.max_cost:
            return mission, "max_cost"
    return None


def check_depth(depth: int, limits: LoopLimits) -> None:
    """Raise ``SkillError`` for a mission so deep in others that it must not begin."""
    if depth > limits.max_depth:
        raise SkillError(f"a sub-mission would be {depth} deep; {limits.max_depth} is the limit")
