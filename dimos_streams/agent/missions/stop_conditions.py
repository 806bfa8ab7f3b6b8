"""Conditions under which a mission stops, whatever its model still wants."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dimos_streams.common.importing import import_attribute
from dimos_streams.common.polygon import inside
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import UserError
from dimos_streams.operator.messages.agent import Usage

STOPPED = "stop_condition"
"""The reason for a stop if the condition gives none."""
_FAILED = "stop_condition_failed"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotState:
    """The state of the robot, as the agent knows it; None means not known."""

    x: float | None = None
    y: float | None = None
    """The position in the odom frame, in metres."""
    yaw: float | None = None
    """The heading, in radians to the left of the odom frame's x axis."""
    battery: float | None = None
    """The charge, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedCall:
    """A call of the model that was run, or refused."""

    skill: str
    arguments: Mapping[str, Any]
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a turn. Conditions see it after each answer, before what it asks for is run, and after that."""

    iteration: int
    """The number of the iteration, counted from 1."""
    response: str
    """The newest answer's text."""
    asked: tuple[str, ...]
    """Names of the calls that it asks for and that have not been run."""
    spent: Usage
    """The usage of the turn so far."""
    executed: Sequence[ExecutedCall]
    """The turn's calls so far."""
    last_results: Sequence[ExecutedCall]
    """The calls of the newest batch."""
    robot: RobotState


StopCondition: TypeAlias = Callable[[Progress], bool | str | None]
"""A condition: it returns False or None to go on, True to stop, or the reason to stop for."""


def verdict(conditions: Iterable[StopCondition], progress: Progress) -> str | None:
    """The reason of the first condition that stops, or None to go on."""
    for condition in conditions:
        found = condition(progress)
        if found:
            return found if isinstance(found, str) else STOPPED
    return None


def battery_below(level: float) -> StopCondition:
    """Return a condition that stops when the battery is known to hold less than ``level``, 0 to 1."""

    def condition(progress: Progress) -> str | None:
        battery = progress.robot.battery
        return f"battery: {battery:.0%} left" if battery is not None and battery < level else None

    return condition


def goal_reached(x: float, y: float, within_m: float) -> StopCondition:
    """Return a condition that stops when the robot is that near to a point of the odom frame."""

    def condition(progress: Progress) -> str | None:
        at = progress.robot
        if at.x is None or at.y is None:
            return None
        return "goal_reached" if math.hypot(at.x - x, at.y - y) <= within_m else None

    return condition


def outside(fence: Sequence[tuple[float, float]]) -> StopCondition:
    """Return a condition that stops when the robot has left a polygon of the odom frame."""

    def condition(progress: Progress) -> str | None:
        at = progress.robot
        if at.x is None or at.y is None or inside(fence, (at.x, at.y)):
            return None
        return f"geofence: the robot is outside, at ({at.x:.2f}, {at.y:.2f})"

    return condition


def load_condition(path: str) -> StopCondition:
    """Return the condition that ``"package.module:name"`` names; one that fails stops. Raises ``UserError`` if there
    is none, or if it can't be asked."""
    try:
        found = import_attribute(path)
    except UserError as error:
        raise UserError(f"stop condition {path!r} can't be imported: {error}") from error
    if not callable(found):
        raise UserError(f"stop condition {path!r} is no function (valid: 'package.module:function')")
    if inspect.iscoroutinefunction(found):
        raise UserError(f"stop condition {path!r} is asynchronous; nobody waits for it: make it a plain `def`")
    try:
        inspect.signature(found).bind(None)
    except TypeError as error:
        raise UserError(f"stop condition {path!r} can't be asked about a Progress: {error}") from error
    except ValueError:  # nobody knows what this one takes
        pass
    condition: StopCondition = found

    def asked(progress: Progress) -> bool | str | None:
        try:
            return condition(progress)
        except Exception as error:
            _logger.exception("stop condition %r failed", path)
            return f"{_FAILED}: {path}: {type(error).__name__}: {redacted(str(error))}"

    return asked
