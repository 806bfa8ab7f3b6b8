"""Restricted zones, and whether the arguments of a call would bring the robot into one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dimos_streams.agent.policies.gates.matching.patterns import is_number, number_in
from dimos_streams.common.polygon import Point, crosses, inside, with_inside
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.messages.planar import PlanarPose


class Zone(FrozenModel):
    """A part of the floor that the robot enters only by an approved plan."""

    name: str
    """The name by which refusals and maps call it."""
    polygon: Annotated[tuple[Point, ...], Field(min_length=3), AfterValidator(with_inside)]
    """The corners in the odom frame, in metres; the last is joined to the first."""


class Zones:
    """The restricted zones of one agent."""

    def __init__(self, zones: Iterable[Zone]) -> None:
        self._zones = tuple(zones)

    def __bool__(self) -> bool:
        return bool(self._zones)

    def entered(self, arguments: Mapping[str, Any], pose: PlanarPose | None) -> str:
        """The name of a zone in which a motion with these arguments would end, or through which it would lead.

        Empty if there is none. The arguments that are understood are ``x`` and ``y`` (a goal in the odom frame) and
        ``distance_m`` (straight ahead, if the pose is known). A robot that stands within a zone does not enter it;
        leaving is free.
        """
        goal = _ends_at(arguments, pose)
        if goal is None:
            return ""
        for zone in self._zones:
            if inside(zone.polygon, goal) and not (pose and inside(zone.polygon, (pose.x, pose.y))):
                return zone.name
            if pose is not None and crosses(zone.polygon, (pose.x, pose.y), goal):
                return zone.name
        return ""


def goal_of(arguments: Mapping[str, Any]) -> Point | None:
    """Return the point ``x``, ``y`` that arguments name, in the frame of their skill, or None if they name none."""
    x, y = (_number(arguments.get(name)) for name in ("x", "y"))
    return None if x is None or y is None else (x, y)


def _ends_at(arguments: Mapping[str, Any], pose: PlanarPose | None) -> Point | None:
    goal, distance = goal_of(arguments), _number(arguments.get("distance_m"))
    if goal is not None:
        return goal
    if distance is not None and pose is not None:
        return pose.x + distance * math.cos(pose.yaw), pose.y + distance * math.sin(pose.yaw)
    return None


def _number(value: Any) -> float | None:
    number = number_in(value)
    return float(number) if is_number(number) else None
