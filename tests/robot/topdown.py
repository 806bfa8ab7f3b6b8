"""A map of the room from above, with furniture and the ways that robot and people took. Numpy only."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dimos_streams.robot.rendering import floor
from dimos_streams.robot.simulation.body import Colour
from dimos_streams.robot.simulation.furniture import Furniture, Solid
from dimos_streams.robot.simulation.mjcf import BASE_RADIUS
from dimos_streams.robot.simulation.scene import STOCK_SCENE, Scene

Floats = NDArray[np.floating[Any]]
Point = tuple[float, float]
Distance = Callable[[Floats, Floats], Floats]

_MARGIN = 0.12
_WALL: Colour = (84, 82, 80)
_OUTLINE: Colour = (50, 44, 40)
_WHITE: Colour = (255, 255, 255)


class TopDown:
    """A drawing of the room; x to the right, y up, `pixels_per_metre` large. Draw, then take `picture()`."""

    def __init__(self, scene: Scene = STOCK_SCENE, *, pixels_per_metre: float = 60.0) -> None:
        half_x, half_y = scene.room.length / 2, scene.room.width / 2
        self._texel = 1.0 / pixels_per_metre
        self._x = np.arange(-half_x - _MARGIN, half_x + _MARGIN, self._texel, dtype=np.float32)
        self._y = np.arange(half_y + _MARGIN, -half_y - _MARGIN, -self._texel, dtype=np.float32)
        x, y = np.meshgrid(self._x, self._y)
        texture = floor.floor_texture(scene)
        nearest = floor.nearest_texels(texture, scene.room, x, y)
        self._colour: Floats = texture.reshape(-1, 3).take(nearest, axis=0) * 0.6 + 0.4
        self._colour[(np.abs(x) > half_x) | (np.abs(y) > half_y)] = np.array(_WALL) / 255.0
        pieces = [(item, part) for item in scene.furniture for part in item.parts]
        for item, part in sorted(pieces, key=lambda piece: piece[1].at[2] + piece[1].size[2] / 2):
            self._draw_part(item, part)

    def track(self, points: Sequence[Point], colour: Colour, width: float = 0.05) -> None:
        """Draw a way as a line of this width in metres, with a dot at its end."""
        for a, b in itertools.pairwise(points):
            self._stroke(a, b, colour, width)
        if points:
            self.dot(points[-1], colour)

    def dot(self, at: Point, colour: Colour, radius: float = 0.13) -> None:
        """Draw a disc with a white rim."""

        def outside(x: Floats, y: Floats) -> Floats:
            distance: Floats = np.hypot(x - at[0], y - at[1]) - radius
            return distance

        self._fill(at, radius + 0.03, lambda x, y: outside(x, y) - 0.03, _WHITE)
        self._fill(at, radius, outside, colour)

    def robot(self, x: float, y: float, yaw: float, colour: Colour = (40, 44, 56)) -> None:
        """Draw the base and what its camera looks at."""
        cos, sin = math.cos(yaw), math.sin(yaw)

        def beyond_view(px: Floats, py: Floats) -> Floats:
            ahead, aside = (px - x) * cos + (py - y) * sin, (py - y) * cos - (px - x) * sin
            edges: Floats = np.maximum(0.78 * np.abs(aside) - 0.63 * ahead, np.hypot(ahead, aside) - 1.4)
            return edges

        self._fill((x, y), 1.4, beyond_view, _WHITE, opacity=0.35)
        self.dot((x, y), colour, BASE_RADIUS)
        self._stroke((x, y), (x + 0.18 * cos, y + 0.18 * sin), _WHITE, 0.06)

    def picture(self) -> NDArray[np.uint8]:
        """The drawing so far, RGB, shape (height, width, 3)."""
        picture: NDArray[np.uint8] = (np.clip(self._colour, 0.0, 1.0) * 255.0).astype(np.uint8)
        return picture

    def _draw_part(self, item: Furniture, part: Solid) -> None:
        cos, sin = math.cos(item.yaw), math.sin(item.yaw)
        half_u, half_v = part.size[0] / 2, part.size[1] / 2
        middle = (item.x + cos * part.at[0] - sin * part.at[1], item.y + sin * part.at[0] + cos * part.at[1])

        def outside(x: Floats, y: Floats) -> Floats:
            dx, dy = x - middle[0], y - middle[1]
            u, v = np.abs(cos * dx + sin * dy), np.abs(cos * dy - sin * dx)
            edges: Floats = np.maximum(u - half_u, v - half_v)
            if part.shape != "box":
                edges = (np.hypot(u / half_u, v / half_v) - 1.0) * min(half_u, half_v)
            return edges

        reach = math.hypot(half_u, half_v)
        self._fill(middle, reach, outside, _OUTLINE)
        self._fill(middle, reach, lambda x, y: outside(x, y) + 0.02, part.colour)

    def _stroke(self, a: Point, b: Point, colour: Colour, width: float) -> None:
        length = max(1e-6, math.dist(a, b))
        ux, uy = (b[0] - a[0]) / length, (b[1] - a[1]) / length

        def outside(x: Floats, y: Floats) -> Floats:
            along = np.clip((x - a[0]) * ux + (y - a[1]) * uy, 0.0, length)
            distance: Floats = np.hypot(x - a[0] - along * ux, y - a[1] - along * uy) - width / 2
            return distance

        middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
        self._fill(middle, length / 2 + width, outside, colour)

    def _fill(self, middle: Point, reach: float, outside: Distance, colour: Colour, opacity: float = 1.0) -> None:
        """Paint, within reach of a place, where the distance from a shape's edge is negative; softly."""
        reach += self._texel
        columns = slice(*np.searchsorted(self._x, (middle[0] - reach, middle[0] + reach)))
        rows = slice(*np.searchsorted(-self._y, (-middle[1] - reach, -middle[1] + reach)))
        distance = outside(self._x[None, columns], self._y[rows, None])
        cover = opacity * np.clip(0.5 - distance / self._texel, 0.0, 1.0)[..., None]
        self._colour[rows, columns] += cover * (np.array(colour) / 255.0 - self._colour[rows, columns])


def footprints(scene: Scene) -> Mapping[str, tuple[float, float, float, float]]:
    """Bounding boxes (x low, x high, y low, y high) of everything that stands in the way, by name."""
    boxes = {}
    for item in scene.furniture:
        corners = [corner for part in item.parts if part.solid for corner in _corners(item, part)]
        if corners:
            xs, ys = zip(*corners, strict=True)
            boxes[item.name] = (min(xs), max(xs), min(ys), max(ys))
    return boxes


def _corners(item: Furniture, part: Solid) -> list[Point]:
    cos, sin = math.cos(item.yaw), math.sin(item.yaw)
    corners = []
    for u in (part.at[0] - part.size[0] / 2, part.at[0] + part.size[0] / 2):
        for v in (part.at[1] - part.size[1] / 2, part.at[1] + part.size[1] / 2):
            corners.append((item.x + cos * u - sin * v, item.y + sin * u + cos * v))
    return corners
