"""The scene: a room, what stands in it, who is there, and where the robot begins; and the stock one.

The same description feeds the physics, the cameras and the top-down map. Frame: world, x along the room's length,
y along its width, z up, origin in the middle of the floor. Metres, radians.
"""

import math
from dataclasses import dataclass

from dimos_streams.messages.planar import PlanarPose
from dimos_streams.robot.simulation.body import Colour
from dimos_streams.robot.simulation.events import SceneEvent
from dimos_streams.robot.simulation.furniture import (
    WOOD,
    Furniture,
    box,
    chair,
    crate,
    plant,
    shelf,
    sideboard,
    sofa,
    table,
)
from dimos_streams.robot.simulation.people import STOCK_PEOPLE, Person

ORIGIN = PlanarPose()


@dataclass(frozen=True, slots=True)
class Room:
    """Four walls, a floor and a ceiling."""

    length: float = 10.0
    width: float = 8.0
    height: float = 2.6


@dataclass(frozen=True, slots=True)
class Rug:
    """A rectangle on the floor: its middle, and half of its sides."""

    x: float
    y: float
    half_length: float
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything there is besides the robot. `decoration` hangs on the walls and is on no map."""

    room: Room = Room()
    furniture: tuple[Furniture, ...] = ()
    decoration: tuple[Furniture, ...] = ()
    rugs: tuple[Rug, ...] = ()
    people: tuple[Person, ...] = ()
    start: PlanarPose = ORIGIN
    events: tuple[SceneEvent, ...] = ()


STOCK_ROOM = Room()


def _decoration() -> Furniture:
    """The decoration of the walls: windows, a door, pictures. Nothing of it is in the way."""
    wall_x, wall_y = STOCK_ROOM.length / 2 - 0.01, STOCK_ROOM.width / 2 - 0.01
    frame: Colour = (244, 244, 240)
    sky: Colour = (214, 238, 255)
    parts = []
    for y in (-1.9, 0.4):
        parts.append(box((0.03, 1.5, 1.3), (-wall_x, y, 1.55), frame, False))
        parts.append(box((0.05, 0.64, 1.14), (-wall_x, y - 0.35, 1.55), sky, False))
        parts.append(box((0.05, 0.64, 1.14), (-wall_x, y + 0.35, 1.55), sky, False))
    parts.append(box((1.0, 0.04, 2.1), (-1.6, -wall_y, 1.05), (150, 104, 66), False))
    parts.append(box((0.12, 0.08, 0.04), (-1.25, -wall_y, 1.02), (214, 196, 130), False))
    parts.append(box((0.04, 1.1, 0.8), (wall_x, -0.6, 1.65), (52, 88, 110), False))
    parts.append(box((0.05, 0.5, 0.5), (wall_x, -0.75, 1.65), (232, 156, 86), False))
    parts.append(box((1.2, 0.04, 0.75), (-2.6, wall_y, 1.6), (206, 96, 76), False))
    parts.append(box((0.6, 0.05, 0.45), (-2.75, wall_y, 1.6), (244, 214, 150), False))
    parts.append(box((0.8, 0.04, 0.8), (2.4, wall_y, 1.6), (84, 130, 126), False))
    return Furniture("decoration", 0.0, 0.0, 0.0, tuple(parts))


STOCK_FURNITURE: tuple[Furniture, ...] = (
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
)

STOCK_SCENE = Scene(
    room=STOCK_ROOM,
    furniture=STOCK_FURNITURE,
    decoration=(_decoration(),),
    rugs=(Rug(-2.6, 1.95, 1.35, 0.95),),
    people=STOCK_PEOPLE,
    start=PlanarPose(-2.4, -0.9, 0.0),
)
