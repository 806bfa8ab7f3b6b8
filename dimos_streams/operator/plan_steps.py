"""The steps of a plan that waits for a decision, as opposed to arguments that look like some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.operator.known_names import SUBMIT_PLAN


def plan_steps(skill: str, arguments: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the steps of the plan that a call hands in, None if it hands in none. At a fleet's hub the robot's name
    stands before the skill's.

    Any other call is shown as it is: a model chooses its arguments, and what a step has besides a skill and that
    skill's arguments would not be seen.
    """
    is_plan = skill == SUBMIT_PLAN or skill.endswith(f"_{SUBMIT_PLAN}")
    steps = arguments.get("steps") if is_plan else None
    return steps if isinstance(steps, list) and steps and all(map(_is_step, steps)) else None


def _is_step(step: object) -> bool:
    return isinstance(step, Mapping) and step.keys() == {"skill", "arguments"} and isinstance(step["arguments"], dict)
