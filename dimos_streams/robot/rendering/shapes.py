"""Intersections of rays with boxes, ellipsoids, capsules and cylinders, for many rays and many solids at once.

All arrays are (3, n): per pair of a ray and a solid the ray's origin and direction in the solid's frame, and
the half extents of the solid's bounding box. Rays start outside. A capsule's and a cylinder's axis is z.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

_INF = np.float32(np.inf)
_BALL, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX = 2, 3, 4, 5, 6  # as mjtGeom counts


@dataclass(frozen=True, slots=True)
class Shape:
    """The protocol of a kind of solid: `depth(origins, directions, half)`, the ray parameter of the first hit,
    inf or nan where there is none, and `normal(points, half)`, the unit normals at points of the surface.
    """

    depth: Callable[[Floats, Floats, Floats], Floats]
    normal: Callable[[Floats, Floats], Floats]


def half_extents(kind: int, size: NDArray[np.float64]) -> tuple[float, float, float]:
    """Half extents of the bounding box of a geom, from MuJoCo's type and size."""
    a, b, c = (float(value) for value in size)
    if kind == _BALL:
        return a, a, a
    if kind == _CAPSULE:
        return a, a, b + a
    if kind == _CYLINDER:
        return a, a, b
    return a, b, c


def _box_depth(origins: Floats, directions: Floats, half: Floats) -> Floats:
    inverse = 1.0 / directions
    middle, reach = -origins * inverse, half * np.abs(inverse)
    enter, leave = (middle - reach).max(axis=0), (middle + reach).min(axis=0)
    return np.where(enter < leave, enter, _INF)


def _box_normal(points: Floats, half: Floats) -> Floats:
    share = points / half
    face = np.abs(share).argmax(axis=0)
    normal: Floats = np.sign(share) * (np.arange(3)[:, None] == face)
    return normal


def _ellipsoid_depth(origins: Floats, directions: Floats, half: Floats) -> Floats:
    return _sphere_depth(origins / half, directions / half, np.float32(1.0))


def _ellipsoid_normal(points: Floats, half: Floats) -> Floats:
    slope = points / half**2
    return slope / np.sqrt(_dot(slope, slope))


def _capsule_depth(origins: Floats, directions: Floats, half: Floats) -> Floats:
    near, _ = _tube_depths(origins, directions, half[0])
    straight = half[2] - half[0]
    height = origins[2] + near * directions[2]
    from_end = origins.copy()
    from_end[2] -= np.where(height > 0, straight, -straight)
    return np.where(np.abs(height) <= straight, near, _sphere_depth(from_end, directions, half[0]))


def _capsule_normal(points: Floats, half: Floats) -> Floats:
    straight = half[2] - half[0]
    normal: Floats = points / half[0]
    normal[2] -= np.clip(points[2], -straight, straight) / half[0]
    return normal


def _cylinder_depth(origins: Floats, directions: Floats, half: Floats) -> Floats:
    near, far = _tube_depths(origins, directions, half[0])
    middle, reach = -origins[2] / directions[2], half[2] / np.abs(directions[2])
    enter = np.maximum(near, middle - reach)
    return np.where(enter < np.minimum(far, middle + reach), enter, _INF)


def _cylinder_normal(points: Floats, half: Floats) -> Floats:
    share = points / half
    side = np.hypot(share[0], share[1]) > np.abs(share[2])
    return np.where([side, side, ~side], np.stack([share[0], share[1], np.sign(share[2])]), np.float32(0))


def _sphere_depth(origins: Floats, directions: Floats, radius: Floats | np.float32) -> Floats:
    a, b = _dot(directions, directions), _dot(origins, directions)
    square = b * b - a * (_dot(origins, origins) - radius * radius)
    depth: Floats = (-b - np.sqrt(square)) / a
    return depth


def _tube_depths(origins: Floats, directions: Floats, radius: Floats) -> tuple[Floats, Floats]:
    """Depths where the rays enter and leave an endless tube along z; nan where they miss it."""
    a, b = _dot(directions[:2], directions[:2]), _dot(origins[:2], directions[:2])
    root = np.sqrt(b * b - a * (_dot(origins[:2], origins[:2]) - radius * radius))
    return (-b - root) / a, (-b + root) / a


def _dot(a: Floats, b: Floats) -> Floats:
    product: Floats = np.einsum("ij,ij->j", a, b)
    return product


_ROUND = Shape(_ellipsoid_depth, _ellipsoid_normal)
SHAPES: dict[int, Shape] = {
    _BALL: _ROUND,
    _CAPSULE: Shape(_capsule_depth, _capsule_normal),
    _ELLIPSOID: _ROUND,
    _CYLINDER: Shape(_cylinder_depth, _cylinder_normal),
    _BOX: Shape(_box_depth, _box_normal),
}
