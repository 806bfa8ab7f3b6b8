"""The steps of a plan that waits for a decision, as opposed to arguments that look like some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.operator.known_names import SUBMIT_PLAN


def is_plan(skill: str, module: str) -> bool:
    """Return whether an approval is about a plan: an agent's own tool is no module's, unlike a skill that is called
    so. At a fleet's hub the robot's name stands before the skill's."""
    return not module and (skill == SUBMIT_PLAN or skill.endswith(f"_{SUBMIT_PLAN}"))


def plan_steps(skill: str, module: str, arguments: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the steps of the plan that an approval is about, None if it is about none.

    Any other call is shown as it is: a model chooses its arguments, and what a step has besides a skill and that
    skill's arguments would not be seen.
    """
    steps = arguments.get("steps") if is_plan(skill, module) else None
    return steps if isinstance(steps, list) and steps and all(map(_is_step, steps)) else None


def _is_step(step: object) -> bool:
    return isinstance(step, Mapping) and step.keys() == {"skill", "arguments"} and isinstance(step["arguments"], dict)
