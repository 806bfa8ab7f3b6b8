"""Furniture as plain data: solids in a frame of their own, and the kinds that there are. Metres, radians."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from dimos_streams.robot.simulation.body import Colour

TALL = 1.2
"""The height above which things are above the robot, metres."""


@dataclass(frozen=True, slots=True)
class Solid:
    """One convex piece. `size` is the full extent along x, y, z of the piece; `at` is its centre."""

    shape: Literal["box", "cylinder", "ellipsoid"]
    size: tuple[float, float, float]
    at: tuple[float, float, float]
    colour: Colour
    solid: bool = True


@dataclass(frozen=True, slots=True)
class Furniture:
    """A piece of furniture: solids in a frame that stands at (x, y) on the floor, turned by `yaw`."""

    name: str
    x: float
    y: float
    yaw: float
    parts: tuple[Solid, ...]

    def raised(self, by: float) -> "Furniture":
        """Return the same furniture, ``by`` metres higher above the floor."""
        if not by:
            return self
        parts = tuple(replace(part, at=(part.at[0], part.at[1], part.at[2] + by)) for part in self.parts)
        return replace(self, parts=parts)

    def covers(self, x: float, y: float, radius: float) -> bool:
        """Return whether something round on the floor would be in it."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        u, v = cos * (x - self.x) + sin * (y - self.y), cos * (y - self.y) - sin * (x - self.x)
        for part in self.parts:
            beside = max(abs(u - part.at[0]) - part.size[0] / 2, 0.0)
            before = max(abs(v - part.at[1]) - part.size[1] / 2, 0.0)
            if part.solid and part.at[2] - part.size[2] / 2 < TALL and math.hypot(beside, before) < radius:
                return True
        return False


WOOD: Colour = (168, 118, 72)
DARK_WOOD: Colour = (112, 74, 46)
CARDBOARD: Colour = (196, 154, 104)


def box(
    size: tuple[float, float, float], at: tuple[float, float, float], colour: Colour, solid: bool = True
) -> Solid:
    return Solid("box", size, at, colour, solid)


def sofa(name: str, x: float, y: float, yaw: float, colour: Colour) -> Furniture:
    """A sofa of 2.2 x 0.9 m that faces along its +x axis."""
    dark = (colour[0] * 4 // 5, colour[1] * 4 // 5, colour[2] * 4 // 5)
    return Furniture(
        name,
        x,
        y,
        yaw,
        (
            box((0.9, 2.2, 0.28), (0, 0, 0.16), dark),
            box((0.66, 0.86, 0.14), (0.08, -0.44, 0.37), colour),
            box((0.66, 0.86, 0.14), (0.08, 0.44, 0.37), colour),
            box((0.22, 2.2, 0.62), (-0.34, 0, 0.5), dark),
            box((0.9, 0.2, 0.5), (0, -1.0, 0.32), dark),
            box((0.9, 0.2, 0.5), (0, 1.0, 0.32), dark),
            Solid("ellipsoid", (0.22, 0.46, 0.42), (-0.16, -0.6, 0.6), (226, 178, 74), False),
        ),
    )


def table(name: str, x: float, y: float, size: tuple[float, float, float], colour: Colour) -> Furniture:
    """A table on end panels and a middle plank, so that a lidar below the top sees where it stands."""
    length, width, height = size
    panel = (0.06, width - 0.1, height - 0.04)
    return Furniture(
        name,
        x,
        y,
        0.0,
        (
            box((length, width, 0.05), (0, 0, height - 0.025), colour),
            box(panel, (-length / 2 + 0.1, 0, panel[2] / 2), DARK_WOOD),
            box(panel, (length / 2 - 0.1, 0, panel[2] / 2), DARK_WOOD),
            box((length - 0.2, 0.05, height * 0.7), (0, 0, height * 0.35), DARK_WOOD),
        ),
    )


def chair(name: str, x: float, y: float, yaw: float) -> Furniture:
    """A chair that faces along its +x axis."""
    return Furniture(
        name,
        x,
        y,
        yaw,
        (
            box((0.42, 0.42, 0.05), (0, 0, 0.45), WOOD),
            box((0.05, 0.4, 0.46), (-0.19, 0, 0.7), WOOD),
            box((0.3, 0.3, 0.43), (0, 0, 0.215), DARK_WOOD),
        ),
    )


def shelf(name: str, x: float, y: float, yaw: float) -> Furniture:
    """A book shelf of 2.0 m that faces along its +x axis."""
    books: tuple[Colour, ...] = ((150, 52, 48), (56, 92, 140), (208, 176, 92), (70, 118, 84), (120, 88, 140))
    parts = [box((0.03, 2.0, 1.9), (-0.16, 0, 0.95), DARK_WOOD)]
    parts += [box((0.34, 2.0, 0.04), (0, 0, 0.05 + 0.455 * level), WOOD) for level in range(5)]
    parts += [box((0.34, 0.04, 1.9), (0, side, 0.95), WOOD) for side in (-0.98, 0.98)]
    for row in range(4):
        for place in range(3):
            colour = books[(row * 2 + place) % len(books)]
            height = 0.24 + 0.04 * ((row + 2 * place) % 3)
            offset = -0.66 + 0.6 * place + 0.1 * (row % 2)
            parts.append(box((0.24, 0.42, height), (-0.02, offset, 0.07 + 0.455 * row + height / 2), colour, False))
    return Furniture(name, x, y, yaw, tuple(parts))


def sideboard(name: str, x: float, y: float, yaw: float) -> Furniture:
    """A low cupboard of 1.6 m that faces along its +x axis, with a lamp on it."""
    return Furniture(
        name,
        x,
        y,
        yaw,
        (
            box((0.45, 1.6, 0.75), (0, 0, 0.375), (206, 200, 188)),
            box((0.47, 1.64, 0.03), (0, 0, 0.765), WOOD),
            box((0.01, 0.015, 0.6), (0.23, 0, 0.38), (120, 116, 108), False),
            Solid("cylinder", (0.05, 0.05, 0.3), (0, 0.5, 0.93), (90, 90, 96), False),
            Solid("cylinder", (0.28, 0.28, 0.22), (0, 0.5, 1.17), (250, 232, 190), False),
        ),
    )


def plant(name: str, x: float, y: float, height: float) -> Furniture:
    """A potted plant."""
    leaf: Colour = (58, 128, 62)
    light: Colour = (92, 156, 76)
    top = height - 0.3
    return Furniture(
        name,
        x,
        y,
        0.0,
        (
            Solid("cylinder", (0.42, 0.42, 0.4), (0, 0, 0.2), (188, 104, 72)),
            Solid("cylinder", (0.07, 0.07, top), (0, 0, top / 2), DARK_WOOD, False),
            Solid("ellipsoid", (0.5, 0.5, 0.6), (0, 0, top), leaf, False),
            Solid("ellipsoid", (0.44, 0.4, 0.5), (0.16, 0.12, top - 0.25), light, False),
            Solid("ellipsoid", (0.4, 0.44, 0.46), (-0.14, -0.14, top - 0.3), leaf, False),
        ),
    )


def crate(name: str, x: float, y: float, yaw: float, side: float, z: float = 0.0) -> Furniture:
    """A cardboard box with a strip of tape, standing at height z."""
    return Furniture(
        name,
        x,
        y,
        yaw,
        (
            box((side, side, side * 0.8), (0, 0, z + side * 0.4), CARDBOARD),
            box((side + 0.01, 0.07, side * 0.8 + 0.01), (0, 0, z + side * 0.4), (226, 204, 160), False),
        ),
    )


_USUAL: dict[str, Callable[[Colour | None], Furniture]] = {
    "sofa": lambda colour: sofa("", 0.0, 0.0, 0.0, colour or (96, 122, 150)),
    "table": lambda colour: table("", 0.0, 0.0, (1.2, 0.8, 0.75), colour or WOOD),
    "chair": lambda _: chair("", 0.0, 0.0, 0.0),
    "shelf": lambda _: shelf("", 0.0, 0.0, 0.0),
    "sideboard": lambda _: sideboard("", 0.0, 0.0, 0.0),
    "plant": lambda _: plant("", 0.0, 0.0, 1.5),
    "crate": lambda _: crate("", 0.0, 0.0, 0.0, 0.6),
    "box": lambda colour: _single("box", colour),
    "cylinder": lambda colour: _single("cylinder", colour),
}
KINDS = tuple(_USUAL)


def made(kind: str, size: tuple[float, float, float] | None, colour: Colour | None) -> tuple[Solid, ...]:
    """Return the parts of furniture of a kind, stretched to a size; None keeps the usual size or colour."""
    parts = _USUAL[kind](colour).parts
    if size is None:
        return parts
    usual = [max(part.at[axis] + part.size[axis] / 2 for part in parts) for axis in range(3)]
    extent = (2 * usual[0], 2 * usual[1], usual[2])
    stretch = [wanted / now for wanted, now in zip(size, extent, strict=True)]
    return tuple(_stretched(part, stretch) for part in parts)


def _stretched(part: Solid, by: list[float]) -> Solid:
    (a, b, c), (x, y, z) = part.size, part.at
    return replace(part, size=(a * by[0], b * by[1], c * by[2]), at=(x * by[0], y * by[1], z * by[2]))


def _single(shape: Literal["box", "cylinder"], colour: Colour | None) -> Furniture:
    return Furniture("", 0.0, 0.0, 0.0, (Solid(shape, (0.5, 0.5, 0.5), (0.0, 0.0, 0.25), colour or (128, 130, 136)),))
