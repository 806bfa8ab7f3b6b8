"""Restricted zones: whether a call would bring the robot into one, as far as its arguments tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dimos_streams.agent.gates.settings import Point, Zone

_EDGE = 1e-9


@dataclass(frozen=True, slots=True)
class RobotPose:
    """Where the robot is in the odom frame: metres, radians."""

    x: float
    y: float
    yaw: float


class Zones:
    """The restricted zones of one agent."""

    def __init__(self, zones: Iterable[Zone]) -> None:
        self._zones = tuple(zones)

    def __bool__(self) -> bool:
        return bool(self._zones)

    def entered(self, arguments: Mapping[str, Any], pose: RobotPose | None) -> str:
        """The name of a zone in which a motion with these arguments would end, or through which it would lead.

        Empty if there is none. Known are ``x`` and ``y`` (a goal in the odom frame) and ``distance_m`` (straight
        ahead, if the pose is known). A robot that stands within a zone does not enter it; leaving is free.
        """
        goal = _goal(arguments, pose)
        if goal is None:
            return ""
        for zone in self._zones:
            if inside(zone.polygon, goal) and not (pose and inside(zone.polygon, (pose.x, pose.y))):
                return zone.name
            if pose is not None and _crosses(zone.polygon, (pose.x, pose.y), goal):
                return zone.name
        return ""


def inside(polygon: Sequence[Point], point: Point) -> bool:
    """Whether a point lies in a polygon or on its edge."""
    x, y = point
    within = False
    for (x1, y1), (x2, y2) in _edges(polygon):
        if _on_edge((x1, y1), (x2, y2), point):
            return True
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            within = not within
    return within


def _goal(arguments: Mapping[str, Any], pose: RobotPose | None) -> Point | None:
    x, y, distance = (_number(arguments.get(name)) for name in ("x", "y", "distance_m"))
    if x is not None and y is not None:
        return x, y
    if distance is not None and pose is not None:
        return pose.x + distance * math.cos(pose.yaw), pose.y + distance * math.sin(pose.yaw)
    return None


def _crosses(polygon: Sequence[Point], start: Point, end: Point) -> bool:
    """Whether a straight way that begins outside a polygon touches it."""
    if inside(polygon, start):
        return False
    return any(_meet(start, end, a, b) for a, b in _edges(polygon))


def _edges(polygon: Sequence[Point]) -> Iterable[tuple[Point, Point]]:
    return zip(polygon, (*polygon[1:], polygon[0]), strict=True)


def _meet(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether two line segments have a point in common."""
    if _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0:
        return True
    return _on_edge(a, b, c) or _on_edge(a, b, d) or _on_edge(c, d, a) or _on_edge(c, d, b)


def _side(a: Point, b: Point, point: Point) -> float:
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])


def _on_edge(a: Point, b: Point, point: Point) -> bool:
    if abs(_side(a, b, point)) > _EDGE:
        return False
    return all(min(p, q) - _EDGE <= r <= max(p, q) + _EDGE for p, q, r in zip(a, b, point, strict=True))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
