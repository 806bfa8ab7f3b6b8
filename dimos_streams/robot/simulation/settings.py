"""The settings of a scene as people write them: room, furniture, people, events. Plain values, in degrees; a
file has them all, the simulator's settings some. `assembly` makes a scene of them."""

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.errors import suggest
from dimos_streams.robot.simulation.body import Colour
from dimos_streams.robot.simulation.events import SceneEvent

COLOURS: dict[str, Colour] = {
    "red": (206, 40, 40),
    "green": (44, 152, 66),
    "blue": (44, 78, 168),
    "yellow": (236, 196, 48),
    "orange": (232, 120, 36),
    "purple": (118, 62, 150),
    "pink": (232, 130, 170),
    "brown": (112, 74, 46),
    "black": (34, 34, 38),
    "grey": (128, 130, 136),
    "white": (238, 238, 236),
}
MAX_PEOPLE = 50
MAX_FURNITURE = 300

Metres = Annotated[float, Field(allow_inf_nan=False)]
Size = Annotated[float, Field(gt=0.0, le=50.0)]


def _colour(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in COLOURS:
        known = ", ".join(COLOURS)
        raise ValueError(f"no colour {value!r}{suggest(value, COLOURS)} (use {known}, or [red, green, blue] 0..255)")
    return COLOURS[value]


Channel = Annotated[int, Field(ge=0, le=255)]
ColourSetting = Annotated[tuple[Channel, Channel, Channel], BeforeValidator(_colour)]


def colour_name(colour: Colour) -> str:
    """The name of the colour that is nearest."""
    return min(COLOURS, key=lambda name: math.dist(COLOURS[name], colour))


class RoomSettings(FrozenModel):
    """Inner sides of the room, metres."""

    length: float = Field(10.0, ge=2.0, le=40.0)
    """The length along x, in metres."""
    width: float = Field(8.0, ge=2.0, le=40.0)
    """The width along y, in metres."""
    height: float = Field(2.6, ge=2.0, le=10.0)
    """The height of the walls, in metres."""


class PlaceSettings(FrozenModel):
    """A place on the floor and a direction."""

    x: Metres = 0.0
    """The x coordinate, in metres."""
    y: Metres = 0.0
    """The y coordinate, in metres."""
    yaw_deg: Metres = 0.0
    """The direction, in degrees, counter-clockwise from the x axis."""


class RugSettings(FrozenModel):
    """A rug: its middle and its sides."""

    x: Metres
    y: Metres
    length: Size
    width: Size


class SolidSettings(FrozenModel):
    """A part of a piece of furniture of your own: full extents, and the middle in the furniture's frame."""

    shape: Literal["box", "cylinder", "ellipsoid"] = "box"
    """One of ``box``, ``cylinder`` and ``ellipsoid``."""
    size: tuple[Size, Size, Size]
    """The full extents along x, y and z, in metres."""
    at: tuple[Metres, Metres, Metres]
    """The middle, in the furniture's frame, in metres."""
    colour: ColourSetting = COLOURS["grey"]
    """The name of a colour, or red, green and blue, each 0 to 255."""
    solid: bool = True
    """True if it stops the robot, false if the robot passes through it."""


class FurnitureSettings(FrozenModel):
    """Something that stands in the room: of a known kind, or of parts."""

    name: str = Field("", max_length=64)
    """The name by which settings and errors refer to it; `""` is its kind and a number."""
    kind: Literal["sofa", "table", "chair", "shelf", "sideboard", "plant", "crate", "box", "cylinder"] | None = None
    """The kind, which determines its parts; None for furniture made of `parts`."""
    x: Metres
    """The x coordinate of its middle, in metres."""
    y: Metres
    """The y coordinate of its middle, in metres."""
    z: float = Field(0.0, ge=0.0, le=10.0)
    """The height above the floor, in metres."""
    yaw_deg: Metres = 0.0
    """The direction, in degrees, counter-clockwise from the x axis."""
    size: tuple[Size, Size, Size] | None = None
    """Length, width and height, in metres; None for those that are usual for its kind."""
    colour: ColourSetting | None = None
    """The colour of a sofa, table, box or cylinder; other kinds have fixed colours."""
    parts: tuple[SolidSettings, ...] = Field((), max_length=100)

    @model_validator(mode="after")
    def _one_description(self) -> "FurnitureSettings":
        if (self.kind is None) is not bool(self.parts):
            raise ValueError("furniture has either a kind or parts of its own")
        if self.parts and (self.size or self.colour):
            raise ValueError("furniture made of parts has no size and no colour: its parts have them")
        if self.colour and self.kind not in ("sofa", "table", "box", "cylinder"):
            raise ValueError(f"a {self.kind} has fixed colours; only sofa, table, box and cylinder can be given one")
        return self


class PersonSettings(FrozenModel):
    """A person: clothes, and either a path to walk round and round or a place to stay at."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)
    """The person's name in events and in the frames of the ground truth."""
    description: str = Field("", max_length=200)
    """The label that a detector gives the person; `""` is one made of the colours of the clothes."""
    height: float = Field(1.75, ge=0.8, le=2.2)
    """The person's height, in metres."""
    shirt: ColourSetting = COLOURS["blue"]
    """The colour of the shirt."""
    trousers: ColourSetting = COLOURS["grey"]
    """The colour of the trousers."""
    skin: ColourSetting | None = None
    """The colour of the skin; None for the usual one."""
    hair: ColourSetting | None = None
    """The colour of the hair; None for the usual one."""
    shoes: ColourSetting | None = None
    """The colour of the shoes; None for the usual one."""
    path: tuple[tuple[Metres, Metres], ...] = Field((), max_length=100)
    """The corners of the closed path that the person walks: x and y of each, in metres."""
    speed: float = Field(0.7, ge=0.05, le=2.0)
    """The walking speed, in m/s."""
    place: PlaceSettings | None = None
    seat: float | None = Field(None, gt=0.0, le=1.2)
    """The height of the seat, in metres, of a person who sits; None for anybody else."""

    @model_validator(mode="after")
    def _somewhere(self) -> "PersonSettings":
        if bool(self.path) is (self.place is not None):
            raise ValueError("a person has either a path or a place")
        if self.path and len(set(self.path)) < 2:
            raise ValueError("a path needs at least two corners that differ; give a person who stands still a place")
        if self.path and self.seat is not None:
            raise ValueError("a person with a path walks and has no seat")
        return self


def _kind_of(value: Any) -> str:
    return "name" if isinstance(value, str) else "described"


PersonItem = Annotated[
    Annotated[str, Tag("name")] | Annotated[PersonSettings, Tag("described")], Discriminator(_kind_of)
]
"""A person, or the name of one whom the scene or the stock room has; `stock` is all of the stock room's."""
FurnitureItem = Annotated[
    Annotated[str, Tag("name")] | Annotated[FurnitureSettings, Tag("described")], Discriminator(_kind_of)
]
PeopleSetting = Annotated[tuple[PersonItem, ...], Field(max_length=MAX_PEOPLE)]
FurnitureSetting = Annotated[tuple[FurnitureItem, ...], Field(max_length=MAX_FURNITURE)]


class SceneSettings(FrozenModel):
    """A scene, or changes to another one: None keeps what that one has."""

    room: RoomSettings | None = None
    rugs: tuple[RugSettings, ...] | None = Field(None, max_length=20)
    furniture: FurnitureSetting | None = None
    people: PeopleSetting | None = None
    start: PlaceSettings | None = None
    events: tuple[SceneEvent, ...] = Field((), max_length=1000)
