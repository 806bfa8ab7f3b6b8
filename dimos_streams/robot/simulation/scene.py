"""The furnished room as plain data, and the MJCF text made from it.

The same description feeds the physics, the cameras and the top-down map. Frame: world, x along the long
walls, y along the short ones, z up, origin in the middle of the floor. Metres, radians.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dimos_streams.robot.simulation.body import PARTS, Appearance, Limb, limbs

Colour = tuple[int, int, int]

ROOM_LENGTH = 10.0
ROOM_WIDTH = 8.0
ROOM_HEIGHT = 2.6

BASE_RADIUS = 0.22
PERSON_RADIUS = 0.15
LIDAR_HEIGHT = 0.25
CAMERA_HEIGHT = 1.1
CAMERA_FORWARD = 0.06

# Geom groups, so that a ray can leave out what it should not see.
GROUP_SHELL = 0
GROUP_FURNITURE = 1
GROUP_PEOPLE = 2
GROUP_BASE = 3
GROUP_HULL = 4

# Collision masks. Geoms that meet nothing have a bit of their own: with none, mj_multiRay misses them in a
# body that has others.
TANGIBLE = 1
INTANGIBLE = 2

TIMESTEP_S = 0.005


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


WOOD: Colour = (168, 118, 72)
DARK_WOOD: Colour = (112, 74, 46)
CARDBOARD: Colour = (196, 154, 104)


def _box(
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
            _box((0.9, 2.2, 0.28), (0, 0, 0.16), dark),
            _box((0.66, 0.86, 0.14), (0.08, -0.44, 0.37), colour),
            _box((0.66, 0.86, 0.14), (0.08, 0.44, 0.37), colour),
            _box((0.22, 2.2, 0.62), (-0.34, 0, 0.5), dark),
            _box((0.9, 0.2, 0.5), (0, -1.0, 0.32), dark),
            _box((0.9, 0.2, 0.5), (0, 1.0, 0.32), dark),
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
            _box((length, width, 0.05), (0, 0, height - 0.025), colour),
            _box(panel, (-length / 2 + 0.1, 0, panel[2] / 2), DARK_WOOD),
            _box(panel, (length / 2 - 0.1, 0, panel[2] / 2), DARK_WOOD),
            _box((length - 0.2, 0.05, height * 0.7), (0, 0, height * 0.35), DARK_WOOD),
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
            _box((0.42, 0.42, 0.05), (0, 0, 0.45), WOOD),
            _box((0.05, 0.4, 0.46), (-0.19, 0, 0.7), WOOD),
            _box((0.3, 0.3, 0.43), (0, 0, 0.215), DARK_WOOD),
        ),
    )


def shelf(name: str, x: float, y: float, yaw: float) -> Furniture:
    """A book shelf of 2.0 m that faces along its +x axis."""
    books: tuple[Colour, ...] = ((150, 52, 48), (56, 92, 140), (208, 176, 92), (70, 118, 84), (120, 88, 140))
    parts = [_box((0.03, 2.0, 1.9), (-0.16, 0, 0.95), DARK_WOOD)]
    parts += [_box((0.34, 2.0, 0.04), (0, 0, 0.05 + 0.455 * level), WOOD) for level in range(5)]
    parts += [_box((0.34, 0.04, 1.9), (0, side, 0.95), WOOD) for side in (-0.98, 0.98)]
    for row in range(4):
        for place in range(3):
            colour = books[(row * 2 + place) % len(books)]
            height = 0.24 + 0.04 * ((row + 2 * place) % 3)
            offset = -0.66 + 0.6 * place + 0.1 * (row % 2)
            parts.append(_box((0.24, 0.42, height), (-0.02, offset, 0.07 + 0.455 * row + height / 2), colour, False))
    return Furniture(name, x, y, yaw, tuple(parts))


def sideboard(name: str, x: float, y: float, yaw: float) -> Furniture:
    """A low cupboard of 1.6 m that faces along its +x axis, with a lamp on it."""
    return Furniture(
        name,
        x,
        y,
        yaw,
        (
            _box((0.45, 1.6, 0.75), (0, 0, 0.375), (206, 200, 188)),
            _box((0.47, 1.64, 0.03), (0, 0, 0.765), WOOD),
            _box((0.01, 0.015, 0.6), (0.23, 0, 0.38), (120, 116, 108), False),
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
            _box((side, side, side * 0.8), (0, 0, z + side * 0.4), CARDBOARD),
            _box((side + 0.01, 0.07, side * 0.8 + 0.01), (0, 0, z + side * 0.4), (226, 204, 160), False),
        ),
    )


def _decoration() -> Furniture:
    """What hangs on the walls: windows, a door, pictures. Nothing of it is in the way."""
    wall_x, wall_y = ROOM_LENGTH / 2 - 0.01, ROOM_WIDTH / 2 - 0.01
    frame: Colour = (244, 244, 240)
    sky: Colour = (214, 238, 255)
    parts = []
    for y in (-1.9, 0.4):
        parts.append(_box((0.03, 1.5, 1.3), (-wall_x, y, 1.55), frame, False))
        parts.append(_box((0.05, 0.64, 1.14), (-wall_x, y - 0.35, 1.55), sky, False))
        parts.append(_box((0.05, 0.64, 1.14), (-wall_x, y + 0.35, 1.55), sky, False))
    parts.append(_box((1.0, 0.04, 2.1), (-1.6, -wall_y, 1.05), (150, 104, 66), False))
    parts.append(_box((0.12, 0.08, 0.04), (-1.25, -wall_y, 1.02), (214, 196, 130), False))
    parts.append(_box((0.04, 1.1, 0.8), (wall_x, -0.6, 1.65), (52, 88, 110), False))
    parts.append(_box((0.05, 0.5, 0.5), (wall_x, -0.75, 1.65), (232, 156, 86), False))
    parts.append(_box((1.2, 0.04, 0.75), (-2.6, wall_y, 1.6), (206, 96, 76), False))
    parts.append(_box((0.6, 0.05, 0.45), (-2.75, wall_y, 1.6), (244, 214, 150), False))
    parts.append(_box((0.8, 0.04, 0.8), (2.4, wall_y, 1.6), (84, 130, 126), False))
    return Furniture("decoration", 0.0, 0.0, 0.0, tuple(parts))


FURNITURE: tuple[Furniture, ...] = (
    sofa("sofa", -2.6, 3.45, -math.pi / 2, (96, 122, 150)),
    table("coffee_table", -2.6, 2.1, (1.1, 0.6, 0.42), WOOD),
    table("dining_table", 2.4, 2.3, (1.6, 0.9, 0.75), (196, 150, 100)),
    chair("chair_1", 2.0, 1.6, math.pi / 2),
    chair("chair_2", 2.8, 1.55, math.pi / 2 + 0.2),
    chair("chair_3", 2.0, 3.02, -math.pi / 2),
    chair("chair_4", 2.8, 3.02, -math.pi / 2),
    shelf("shelf", 1.8, -3.8, math.pi / 2),
    sideboard("sideboard", 4.72, -0.6, math.pi),
    plant("plant_north", 4.4, 3.4, 1.7),
    plant("plant_south", 4.4, -3.4, 1.3),
    plant("plant_west", -4.5, 3.4, 1.5),
    crate("crate_1", -4.4, -3.4, 0.1, 0.7),
    crate("crate_2", -3.65, -3.55, -0.25, 0.55),
    crate("crate_3", -4.38, -3.42, 0.5, 0.5, z=0.56),
    _decoration(),
)


def mjcf(people: Iterable[tuple[str, Appearance]]) -> str:
    """MJCF text of the room, the base and these people (name, appearance), each limb a mocap body."""
    cast = "\n".join(_person_xml(name, appearance) for name, appearance in people)
    furniture = "\n".join(_furniture_xml(item) for item in FURNITURE)
    return f"""
<mujoco model="room">
  <compiler angle="radian"/>
  <option timestep="{TIMESTEP_S}" integrator="implicitfast" cone="elliptic"/>
  <visual><global offwidth="1280" offheight="960"/></visual>
  <worldbody>
    <light name="sun" directional="true" dir="0.45 -0.4 -0.8" diffuse="0.7 0.7 0.7"/>
{_shell_xml()}
{furniture}
{_base_xml()}
{cast}
  </worldbody>
  <actuator>
    <velocity name="drive_x" joint="base_x" kv="400" forcerange="-150 150"/>
    <velocity name="drive_y" joint="base_y" kv="400" forcerange="-150 150"/>
    <velocity name="drive_yaw" joint="base_yaw" kv="60" forcerange="-40 40"/>
  </actuator>
</mujoco>
"""


def _shell_xml() -> str:
    x, y, z, t = ROOM_LENGTH / 2, ROOM_WIDTH / 2, ROOM_HEIGHT / 2, 0.1
    wall = f'type="box" rgba="0.87 0.85 0.80 1" group="{GROUP_SHELL}"'
    return f"""
    <geom name="floor" type="box" size="{x} {y} {t}" pos="0 0 {-t}" rgba="0.72 0.56 0.40 1" group="{GROUP_SHELL}"/>
    <geom name="ceiling" type="box" size="{x} {y} {t}" pos="0 0 {2 * z + t}" rgba="0.95 0.95 0.93 1"
          group="{GROUP_SHELL}"/>
    <geom name="wall_east" size="{t} {y} {z}" pos="{x + t} 0 {z}" {wall}/>
    <geom name="wall_west" size="{t} {y} {z}" pos="{-x - t} 0 {z}" {wall}/>
    <geom name="wall_north" size="{x} {t} {z}" pos="0 {y + t} {z}" {wall}/>
    <geom name="wall_south" size="{x} {t} {z}" pos="0 {-y - t} {z}" {wall}/>"""


def _base_xml() -> str:
    skirt = "0.16 0.18 0.22 1"
    touch = f'priority="1" friction="0.05 0.005 0.0001" group="{GROUP_BASE}"'
    top = CAMERA_HEIGHT
    return f"""
    <body name="base">
      <joint name="base_x" type="slide" axis="1 0 0"/>
      <joint name="base_y" type="slide" axis="0 1 0"/>
      <joint name="base_yaw" type="hinge" axis="0 0 1"/>
      <geom name="base_body" type="cylinder" size="{BASE_RADIUS} 0.14" pos="0 0 0.17" mass="18"
            rgba="{skirt}" {touch}/>
      <geom name="base_mast" type="cylinder" size="0.04 {(top - 0.25) / 2}" pos="-0.02 0 {(top + 0.35) / 2}"
            mass="1.5" rgba="0.7 0.72 0.75 1" {touch}/>
      <geom name="base_head" type="box" size="0.05 0.09 0.04" pos="0 0 {top}" mass="0.5"
            rgba="0.92 0.5 0.16 1" {touch}/>
      <camera name="head" pos="{CAMERA_FORWARD} 0 {top}" xyaxes="0 -1 0 0 0 1" fovy="62"/>
    </body>"""


def _furniture_xml(item: Furniture) -> str:
    geoms = "\n".join(_solid_xml(part) for part in item.parts)
    return f"""    <frame pos="{item.x} {item.y} 0" euler="0 0 {item.yaw}">
{geoms}
    </frame>"""


def _solid_xml(part: Solid) -> str:
    half = [extent / 2 for extent in part.size]
    size = f"{half[0]} {half[2]}" if part.shape == "cylinder" else f"{half[0]} {half[1]} {half[2]}"
    mask = TANGIBLE if part.solid else INTANGIBLE
    return (
        f'      <geom type="{part.shape}" size="{size}" pos="{part.at[0]} {part.at[1]} {part.at[2]}" '
        f'rgba="{_rgba(part.colour)}" contype="{mask}" conaffinity="{mask}" group="{GROUP_FURNITURE}"/>'
    )


# What the base runs into where a person stands: swinging limbs would kick it. No sensor sees it.
_HULL_XML = (
    f'      <geom type="cylinder" size="{PERSON_RADIUS} 0.4" pos="0 0 -0.45" rgba="0 0 0 0" group="{GROUP_HULL}"/>'
)


def _person_xml(name: str, appearance: Appearance) -> str:
    bodies = []
    pieces = limbs(appearance)
    for part in PARTS:
        geoms = "\n".join(_limb_xml(limb) for limb in pieces[part])
        if part == "trunk":
            geoms += "\n" + _HULL_XML
        bodies.append(f'    <body name="{name}/{part}" mocap="true">\n{geoms}\n    </body>')
    return "\n".join(bodies)


def _limb_xml(limb: Limb) -> str:
    values = " ".join(f"{value:.4f}" for value in limb.size)
    place = "fromto" if limb.shape == "capsule" else "pos"
    where = " ".join(f"{value:.4f}" for value in limb.at)
    return (
        f'      <geom type="{limb.shape}" size="{values}" {place}="{where}" rgba="{_rgba(limb.colour)}" '
        f'contype="{INTANGIBLE}" conaffinity="{INTANGIBLE}" group="{GROUP_PEOPLE}"/>'
    )


def _rgba(colour: Colour) -> str:
    return " ".join(f"{channel / 255:.4f}" for channel in colour) + " 1"
