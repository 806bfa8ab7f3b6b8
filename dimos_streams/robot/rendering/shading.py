"""The colours of what rays have hit: the light on it, the floor's picture, and a soft shadow at everyone's feet.

While a camera stays in its place, only what people cover and where their shadows fall is shaded anew.
"""

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dimos_streams.messages.planar import PlanarPose
from dimos_streams.robot.rendering import floor
from dimos_streams.robot.rendering.raycast import Hits
from dimos_streams.robot.simulation.people import Stance
from dimos_streams.robot.simulation.scene import Scene

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]
Picture = NDArray[np.uint8]

AMBIENT, SKY, SUNLIGHT, HEADLIGHT = 0.5, 0.2, 0.45, 0.16
FADE_PER_METRE = 0.02
SHADOW_RADIUS = 0.38


@dataclass(frozen=True, slots=True)
class _Surface:
    """The surfaces that all pixels show, one after another, without shadows of people."""

    colour: Integers
    """The indices of their colours."""
    light: Floats
    floor: Integers
    """The pixels that see the floor."""
    x: Floats
    y: Floats
    """The places in the world that those see."""

    def copy(self) -> "_Surface":
        """Return a copy to be shaded."""
        return _Surface(self.colour.copy(), self.light.copy(), self.floor, self.x, self.y)


@dataclass(frozen=True, slots=True)
class _Still:
    """The part of a scene that never moves, seen from one place."""

    hits: Hits
    surface: _Surface
    picture: Picture
    """The picture of it, as colours one after another."""


class Shading:
    """Shades what the rays of one camera have hit in one scene."""

    def __init__(self, scene: Scene, palette: Floats, floor_geom: int, u: Floats, v: Floats) -> None:
        """``palette`` are the colours of all geoms; ``u`` and ``v`` are the rays' slopes, to the right for each
        column and down for each row."""
        self._scene = scene
        self._palette = palette
        self._floor_geom = floor_geom
        self._u = u
        self._shape = len(v), len(u)
        self._facing = (1.0 / np.sqrt(1.0 + u[None, :] ** 2 + v[:, None] ** 2)).reshape(-1)
        self._still: _Still | None = None

    @functools.cached_property
    def _floor(self) -> Floats:
        """The floor's picture, made for the first picture in colour, since there may be none."""
        return floor.floor_texture(self._scene)

    @functools.cached_property
    def _colours(self) -> Floats:
        """The colours of all geoms, and behind them those of the floor's texels."""
        return np.concatenate([self._palette, self._floor.reshape(-1, 3)])

    def picture(self, hits: Hits, eye: PlanarPose, people: Collection[Stance]) -> Picture:
        """Return the picture, (height, width, 3), of a camera whose eye is above this place and looks in its
        direction."""
        geom = hits.geom.reshape(-1)
        if hits.background is None:
            surface = self._surface(hits, eye)
            self._shade_floor(surface, geom, people)
            return self._painted(surface.colour, surface.light).reshape(*self._shape, 3)
        still = self._of_background(hits.background, eye)
        surface, picture = still.surface.copy(), still.picture.copy()
        covered = np.flatnonzero(geom != still.hits.geom.reshape(-1))
        surface.colour[covered] = geom.take(covered)
        surface.light[covered] = self._light(hits, covered)
        anew = np.concatenate([covered, *self._shade_floor(surface, geom, people)])
        picture[anew] = self._painted(surface.colour.take(anew), surface.light.take(anew))
        return picture.reshape(*self._shape, 3)

    def _of_background(self, hits: Hits, eye: PlanarPose) -> _Still:
        if self._still is None or self._still.hits is not hits:
            surface = self._surface(hits, eye)
            self._still = _Still(hits, surface, self._painted(surface.colour, surface.light))
        return self._still

    def _surface(self, hits: Hits, eye: PlanarPose) -> _Surface:
        colour = hits.geom.reshape(-1).copy()
        pixels = np.flatnonzero(colour == self._floor_geom)
        ahead = hits.depth.reshape(-1).take(pixels)
        left = -self._u.take(pixels % len(self._u)) * ahead
        cos, sin = math.cos(eye.yaw), math.sin(eye.yaw)
        x = np.float32(eye.x) + cos * ahead - sin * left
        y = np.float32(eye.y) + sin * ahead + cos * left
        colour[pixels] = len(self._palette) + floor.nearest_texels(self._floor, self._scene.room, x, y)
        return _Surface(colour, self._light(hits, slice(None)), pixels, x, y)

    def _light(self, hits: Hits, pixels: Integers | slice) -> Floats:
        sun, up = (light.reshape(-1)[pixels] for light in hits.lights)
        light: Floats = AMBIENT + SKY * (0.5 + 0.5 * up) + SUNLIGHT * np.maximum(sun, 0.0)
        light += HEADLIGHT * self._facing[pixels]
        light *= np.maximum(0.55, 1.0 - FADE_PER_METRE * hits.depth.reshape(-1)[pixels])
        return light

    def _shade_floor(self, surface: _Surface, geom: Integers, people: Collection[Stance]) -> list[Integers]:
        """Darken the floor at everyone's feet, where it is what is seen; return the pixels."""
        shaded = []
        for stance in people:
            across = surface.x - np.float32(stance.x + 0.06)
            along = surface.y - np.float32(stance.y - 0.06)
            close = np.flatnonzero((np.abs(across) < SHADOW_RADIUS) & (np.abs(along) < SHADOW_RADIUS))
            close = close[geom.take(surface.floor.take(close)) == self._floor_geom]
            near = np.hypot(across[close], along[close]) / SHADOW_RADIUS
            pixels = surface.floor.take(close)
            surface.light[pixels] *= 1.0 - 0.5 * np.maximum(0.0, 1.0 - near * near)
            shaded.append(pixels)
        return shaded

    def _painted(self, index: Integers, light: Floats) -> Picture:
        colour = self._colours.take(index, axis=0)
        colour *= light[:, None] * 255.0
        painted: Picture = np.minimum(colour, 255.0).astype(np.uint8)
        return painted
