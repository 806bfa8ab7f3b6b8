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
    """Metres."""
    y: Metres = 0.0
    """Metres."""
    yaw_deg: Metres = 0.0
    """The direction: degrees from the x axis, counter-clockwise."""


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
    """The full extents along x, y and z, m."""
    at: tuple[Metres, Metres, Metres]
    """The middle, in the furniture's frame, m."""
    colour: ColourSetting = COLOURS["grey"]
    """The name of a colour, or red, green and blue, each 0 to 255."""
    solid: bool = True
    """Whether the robot runs into it."""


class FurnitureSettings(FrozenModel):
    """Something that stands in the room: of a known kind, or of parts."""

    name: str = Field("", max_length=64)
    """The name by which others name it; `""` is its kind and a number."""
    kind: Literal["sofa", "table", "chair", "shelf", "sideboard", "plant", "crate", "box", "cylinder"] | None = None
    """The kind, which gives it its parts."""
    x: Metres
    """The place of its middle, m."""
    y: Metres
    """The place of its middle, m."""
    z: float = Field(0.0, ge=0.0, le=10.0)
    """The height above the floor, in metres."""
    yaw_deg: Metres = 0.0
    """The direction: degrees from the x axis, counter-clockwise."""
    size: tuple[Size, Size, Size] | None = None
    """Length, width and height, in metres; None is what is usual."""
    colour: ColourSetting | None = None
    """The colour of a sofa, table, box or cylinder; others have their own."""
    parts: tuple[SolidSettings, ...] = Field((), max_length=100)

    @model_validator(mode="after")
    def _one_description(self) -> "FurnitureSettings":
        if (self.kind is None) is not bool(self.parts):
            raise ValueError("furniture has either a kind or parts of its own")
        if self.parts and (self.size or self.colour):
            raise ValueError("furniture of parts has neither size nor colour: its parts do")
        if self.colour and self.kind not in ("sofa", "table", "box", "cylinder"):
            raise ValueError(f"a {self.kind} has colours of its own; sofa, table, box and cylinder can be given one")
        return self


class PersonSettings(FrozenModel):
    """A person: clothes, and a path walked round and round, or a place."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)
    """The name by which events and frames of the ground truth call the person."""
    description: str = Field("", max_length=200)
    """What a detector calls them; `""` tells the clothes."""
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
    """The corners of a closed way that the person walks."""
    speed: float = Field(0.7, ge=0.05, le=2.0)
    """The walking speed, in m/s."""
    place: PlaceSettings | None = None
    seat: float | None = Field(None, gt=0.0, le=1.2)
    """The height of the seat of a person who sits, in metres."""

    @model_validator(mode="after")
    def _somewhere(self) -> "PersonSettings":
        if bool(self.path) is (self.place is not None):
            raise ValueError("a person has either a path or a place")
        if self.path and len(set(self.path)) < 2:
            raise ValueError("a path needs at least two corners that differ; who stands still has a place")
        if self.path and self.seat is not None:
            raise ValueError("who walks a path has no seat")
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
    """A scene, or what is different from another one: None is as it is there."""

    room: RoomSettings | None = None
    rugs: tuple[RugSettings, ...] | None = Field(None, max_length=20)
    furniture: FurnitureSetting | None = None
    people: PeopleSetting | None = None
    start: PlaceSettings | None = None
    events: tuple[SceneEvent, ...] = Field((), max_length=1000)
