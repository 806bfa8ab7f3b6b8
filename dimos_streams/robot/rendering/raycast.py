"""Casting a pinhole camera's rays at a MuJoCo scene with numpy: which geom, how far, how lit.

`mj_multiRay` visits every body for every ray. Here each geom meets only the rays of the rectangle that it
covers in the image, all geoms of a shape at once, which is many times faster. A test holds the two equal. What never
moves is drawn anew only for another place of the camera: robots stand still for most of the time.

The camera's frame: x forward, y left, z up. A ray's direction is (1, -u, -v), so its length along the
optical axis, the depth, is the ray's parameter itself.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dimos_streams.robot.rendering import shapes
from dimos_streams.robot.simulation.mjcf import GROUP_HULL
from dimos_streams.robot.simulation.scene import Room

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]

NEAR = 0.05
_FAR_BELOW = -10.0
_UP = np.array([0.0, 0.0, 1.0])
_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
_EDGES = np.array([(i, j) for i in range(8) for j in range(i) if (i ^ j).bit_count() == 1]).T
# The room's faces in the order -x +x -y +y -z +z, and their normals, which point inwards.
_SHELL = ("wall_west", "wall_east", "wall_south", "wall_north", "floor", "ceiling")
_SHELL_NORMALS = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float)


@dataclass(frozen=True, slots=True)
class Hits:
    """The first hit of each ray, as (rows, columns) arrays.

    `depth` in metres along the optical axis, `geom` the geom's id, `lights` the cosines between the surface's normal
    and the sun, and the vertical: nothing if they were not asked for. `background` are the hits on which what moves
    was drawn: the same object as long as they are the same; None if all was drawn at once.
    """

    depth: Floats
    geom: Integers
    lights: tuple[Floats, ...]
    background: "Hits | None" = None

    def copy(self) -> "Hits":
        """Return a copy to be drawn on, of which this is the background."""
        return Hits(self.depth.copy(), self.geom.copy(), tuple(light.copy() for light in self.lights), self)


@dataclass(frozen=True, slots=True)
class _Geoms:
    """Some geoms of a model."""

    rows: Integers
    """The rows of the geoms in the caster's tables."""
    ids: Integers
    shapes: tuple[tuple[shapes.Shape, Integers], ...]
    """The shapes, and which of these geoms have each."""
    halves: NDArray[np.float64]
    half_table: Floats


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of a geom and a ray that may meet, geom by geom."""

    row: Integers
    column: Integers
    geoms: Integers
    """Which of some geoms there are."""
    counts: Integers
    """The numbers of these geoms' pairs."""

    def of_geoms(self, table: Floats) -> Floats:
        """Return, for each pair, the geom's column of a table."""
        return np.repeat(table.take(self.geoms, axis=1), self.counts, axis=1)


class RayCaster:
    """Casts at the geoms of one model, as they stand in `data` at the time of the call."""

    def __init__(self, model: Any, room: Room, exclude_body: int, sun: tuple[float, float, float]) -> None:
        self._extent = np.array([room.length, room.width, room.height])
        shell = [model.geom(name).id for name in _SHELL]
        keep = (model.geom_bodyid != exclude_body) & (model.geom_group != GROUP_HULL)
        keep[shell] = False
        self._geoms = np.flatnonzero(keep)
        self._shell = np.array(shell, dtype=np.int32)
        bodies = model.geom_bodyid[self._geoms]
        fixed = (model.body_weldid[bodies] == 0) & (model.body_mocapid[bodies] < 0)
        self._fixed, self._moving, self._all = (
            self._some(model, np.flatnonzero(rows)) for rows in (fixed, ~fixed, np.ones_like(fixed))
        )
        self._sun = np.array(sun) / math.hypot(*sun)
        self._seen_from: tuple[object, ...] = ()
        self._background: Hits | None = None
        """The first hits among what never moves, as seen from ``_seen_from``, once two pictures are taken there."""

    def _some(self, model: Any, rows: Integers) -> _Geoms:
        ids = self._geoms[rows]
        kinds, sizes = model.geom_type[ids], model.geom_size[ids]
        halves = [shapes.half_extents(int(kind), size) for kind, size in zip(kinds, sizes, strict=True)]
        table = np.array(halves).reshape(-1, 3)
        found = ((shape, np.flatnonzero(kinds == kind)) for kind, shape in shapes.SHAPES.items())
        return _Geoms(rows, ids, tuple((shape, those) for shape, those in found if len(those)), table, _table(table))

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def cast(self, data: Any, eye: NDArray[np.float64], yaw: float, u: Floats, v: Floats, lit: bool = True) -> Hits:
        """Cast the rays through all pairs of u (to the right, per column) and v (down, per row)."""
        turn = _turn(yaw)
        axes = turn.T @ data.geom_xmat[self._geoms].reshape(-1, 3, 3)
        places = data.geom_xpos[self._geoms]
        centres = (places - eye) @ turn
        lights = (self._sun @ turn, _UP) if lit else ()

        def cover(hits: Hits, geoms: _Geoms) -> None:
            rows = geoms.rows
            boxes = self._boxes(geoms, axes[rows], centres[rows], places[rows, 2] > _FAR_BELOW, u, v)
            frames = _Frames(axes[rows], centres[rows], lights)
            for shape, pairs in _pairs(geoms, boxes):
                self._draw(hits, geoms, shape, pairs, frames, u, v)

        seen_from = (eye.tobytes(), yaw, u.tobytes(), v.tobytes(), lit)
        if seen_from != self._seen_from:
            self._seen_from, self._background = seen_from, None
            hits = self._room(eye, turn, u, v, lit)
            cover(hits, self._all)
            return hits
        if self._background is None:
            self._background = self._room(eye, turn, u, v, lit)
            cover(self._background, self._fixed)
        hits = self._background.copy()
        cover(hits, self._moving)
        return hits

    def _draw(
        self,
        hits: Hits,
        geoms: _Geoms,
        shape: shapes.Shape,
        pairs: _Pairs,
        frames: "_Frames",
        u: Floats,
        v: Floats,
    ) -> None:
        """Let the geoms of one shape cover what is behind them."""
        origins, half = pairs.of_geoms(frames.origins), pairs.of_geoms(geoms.half_table)
        directions = frames.directions(pairs, u.take(pairs.column), v.take(pairs.row))
        depth = shape.depth(origins, directions, half)
        buffer, pixels = hits.depth.reshape(-1), pairs.row * len(u) + pairs.column
        hit = np.flatnonzero((depth > NEAR) & (depth < buffer.take(pixels)))
        np.minimum.at(buffer, pixels.take(hit), depth.take(hit))
        front = hit[depth.take(hit) == buffer.take(pixels.take(hit))]
        geom = np.repeat(pairs.geoms, pairs.counts).take(front)
        pixel, ahead = pixels.take(front), depth.take(front)
        hits.geom.reshape(-1)[pixel] = geoms.ids[geom]
        if not hits.lights:
            return
        points = origins.take(front, axis=1) + ahead * directions.take(front, axis=1)
        normals = shape.normal(points, half.take(front, axis=1))
        for light, cosines in enumerate(hits.lights):
            cosines.reshape(-1)[pixel] = np.einsum("ij,ij->j", normals, frames.lights[light].take(geom, axis=1))

    def _boxes(
        self,
        geoms: _Geoms,
        axes: NDArray[np.float64],
        centres: NDArray[np.float64],
        visible: NDArray[np.bool_],
        u: Floats,
        v: Floats,
    ) -> NDArray[np.int64]:
        """Return the part of the image that each geom's bounding box covers: top, bottom, left, right.

        What reaches behind the camera is cut where its edges pass it. Empty where nothing is ahead.
        """
        corners = centres[:, None, :] + (_CORNERS * geoms.halves[:, None, :]) @ axes.transpose(0, 2, 1)
        a, b = (corners.take(ends, axis=1) for ends in _EDGES)
        share = (NEAR - a[..., 0]) / (b[..., 0] - a[..., 0])
        crossings = a + np.where((share > 0) & (share < 1), share, np.nan)[..., None] * (b - a)
        outline = np.concatenate([corners, crossings], axis=1)
        depth = np.where(outline[..., 0] > NEAR - 1e-9, outline[..., 0], np.nan)
        across, down = -outline[..., 1] / depth, -outline[..., 2] / depth
        boxes = np.stack(
            [
                np.searchsorted(v, np.fmin.reduce(down, axis=1)),
                np.searchsorted(v, np.fmax.reduce(down, axis=1)),
                np.searchsorted(u, np.fmin.reduce(across, axis=1)),
                np.searchsorted(u, np.fmax.reduce(across, axis=1)),
            ],
            axis=1,
        )
        boxes[~visible] = 0
        return boxes

    def _room(self, eye: NDArray[np.float64], turn: NDArray[np.float64], u: Floats, v: Floats, lit: bool) -> Hits:
        """Cast the rays at the inside of the room, the background of everything."""
        half = self._extent / 2
        origin = eye - np.array([0.0, 0.0, half[2]])
        best = np.full((len(v), len(u)), np.inf, dtype=np.float32)
        face = np.zeros(best.shape, dtype=np.int32)
        level = [np.float32(turn[axis, 0]) - np.float32(turn[axis, 1]) * u for axis in (0, 1)]
        for axis, direction in enumerate((level[0][None, :], level[1][None, :], -v[:, None])):
            ends = np.where(direction > 0, half[axis], -half[axis]) - origin[axis]
            depth = np.broadcast_to((ends / direction).astype(np.float32), best.shape)
            nearer = depth < best
            np.copyto(best, depth, where=nearer)
            np.copyto(face, 2 * axis + (direction > 0), where=nearer)
        cosines = (_SHELL_NORMALS @ self._sun, _SHELL_NORMALS[:, 2]) if lit else ()
        return Hits(best, self._shell.take(face), tuple(light.astype(np.float32).take(face) for light in cosines))


def _pairs(some: _Geoms, boxes: NDArray[np.int64]) -> Iterator[tuple[shapes.Shape, _Pairs]]:
    """Yield the pixels of all geoms' boxes, shape by shape."""
    heights, widths = boxes[:, 1] - boxes[:, 0], boxes[:, 3] - boxes[:, 2]
    counts = heights * widths
    for shape, geoms in some.shapes:
        geoms = geoms[counts.take(geoms) > 0]
        if len(geoms) == 0:
            continue
        height, width = heights.take(geoms), np.repeat(widths.take(geoms), heights.take(geoms))
        row = np.repeat(_counted(boxes[:, 0].take(geoms), height), width)
        column = _counted(np.repeat(boxes[:, 2].take(geoms), height), width)
        yield shape, _Pairs(row, column, geoms, counts.take(geoms))


def _counted(begins: Integers, counts: Integers) -> Integers:
    """Return ``counts`` consecutive numbers from each of ``begins``, one row behind the other."""
    ends = counts.cumsum()
    numbers: Integers = np.arange(ends[-1]) + np.repeat(begins - ends + counts, counts)
    return numbers


class _Frames:
    """Tables, to look up by geom, of the camera and the lights in each geom's frame."""

    def __init__(
        self, axes: NDArray[np.float64], centres: NDArray[np.float64], lights: tuple[NDArray[np.float64], ...]
    ) -> None:
        self.origins = _table(-np.einsum("gij,gi->gj", axes, centres))
        self.lights = [_table(np.einsum("gij,i->gj", axes, light)) for light in lights]
        self._forward, self._left, self._up = (_table(axes[:, row, :]) for row in range(3))

    def directions(self, pairs: _Pairs, u: Floats, v: Floats) -> Floats:
        """Directions of the rays through (u, v), each in the frame of its geom."""
        directions = pairs.of_geoms(self._forward)
        directions -= pairs.of_geoms(self._left) * u
        directions -= pairs.of_geoms(self._up) * v
        return directions


def _table(values: NDArray[np.float64]) -> Floats:
    """Vectors per geom as a (3, geoms) array."""
    return np.ascontiguousarray(values.T, dtype=np.float32)


def _turn(yaw: float) -> NDArray[np.float64]:
    """Return a matrix whose columns are the camera's axes in the world's frame."""
    cos, sin = math.cos(yaw), math.sin(yaw)
    return np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
