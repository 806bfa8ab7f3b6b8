"""Polygons of the floor, in metres: their centre, whether a point lies in one, whether a straight path touches it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Point = tuple[float, float]
"""x and y in metres."""

_EDGE = 1e-9


def centre_of(polygon: Sequence[Point]) -> Point:
    """Return the mean of a polygon's corners, where its name can stand; the origin for one without corners."""
    count = max(1, len(polygon))
    return sum(x for x, _ in polygon) / count, sum(y for _, y in polygon) / count


def inside(polygon: Sequence[Point], point: Point) -> bool:
    """Return whether a point lies in a polygon or on its edge."""
    x, y = point
    within = False
    for (x1, y1), (x2, y2) in _edges(polygon):
        if _on_edge((x1, y1), (x2, y2), point):
            return True
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            within = not within
    return within


def with_inside(polygon: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return a polygon, for pydantic. Raises ``ValueError`` for one whose corners are all on one line."""
    first = polygon[0]
    second = max(polygon, key=lambda corner: math.dist(first, corner))
    if all(abs(_side(first, second, corner)) <= _EDGE for corner in polygon):
        raise ValueError(f"it needs three corners that are not on one line, not {list(polygon)!r}")
    return polygon


def crosses(polygon: Sequence[Point], start: Point, end: Point) -> bool:
    """Return whether a straight path that begins outside a polygon touches it; False for one that begins inside."""
    if inside(polygon, start):
        return False
    return any(_meet(start, end, a, b) for a, b in _edges(polygon))


def _edges(polygon: Sequence[Point]) -> Iterable[tuple[Point, Point]]:
    return zip(polygon, (*polygon[1:], polygon[0]), strict=True)


def _meet(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Return whether two line segments have a point in common."""
    if _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0:
        return True
    return _on_edge(a, b, c) or _on_edge(a, b, d) or _on_edge(c, d, a) or _on_edge(c, d, b)


def _side(a: Point, b: Point, point: Point) -> float:
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])


def _on_edge(a: Point, b: Point, point: Point) -> bool:
    if abs(_side(a, b, point)) > _EDGE:
        return False
    return all(min(p, q) - _EDGE <= r <= max(p, q) + _EDGE for p, q, r in zip(a, b, point, strict=True))
