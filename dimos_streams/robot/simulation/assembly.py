"""Scenes made from settings, and the faults of the names and places in them."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from dimos_streams.errors import suggest
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.robot.simulation.body import BodyAppearance
from dimos_streams.robot.simulation.furniture import Furniture, Solid, made
from dimos_streams.robot.simulation.mjcf import BASE_RADIUS
from dimos_streams.robot.simulation.people import Person
from dimos_streams.robot.simulation.scene import STOCK_SCENE, Room, Rug, Scene
from dimos_streams.robot.simulation.settings import (
    MAX_PEOPLE,
    FurnitureSettings,
    PersonSettings,
    PlaceSettings,
    SceneSettings,
    colour_name,
)

STOCK = "stock"
"""The name for all people, or all furniture, of the stock room."""
FRAMES = frozenset({"world", "odom", "base_link", "camera_optical"})

Path = tuple[str | int, ...]
P = TypeVar("P", Person, Furniture)
S = TypeVar("S", PersonSettings, FurnitureSettings)


class SceneFault(NamedTuple):
    """One thing that is wrong, and the path to it in the settings."""

    path: Path
    text: str

    @property
    def line(self) -> str:
        """The fault in one line: the value's path, and what is wrong with it."""
        return f"{'.'.join(map(str, self.path))}: {self.text}"


def assembled(settings: SceneSettings, base: Scene) -> tuple[Scene, list[SceneFault]]:
    """Return the scene that settings make of another one, whose people and furniture they may name like the stock's.

    What is faulty is left out of it.
    """
    return _Assembly(settings, base).scene()


class _Assembly:
    """One scene on its way. Collects all faults."""

    def __init__(self, settings: SceneSettings, base: Scene) -> None:
        self._settings, self._base = settings, base
        self._faults: list[SceneFault] = []
        self._room = Room(**settings.room.model_dump()) if settings.room else base.room

    def scene(self) -> tuple[Scene, list[SceneFault]]:
        settings, base = self._settings, self._base
        scene = dataclasses.replace(base, room=self._room, events=base.events + settings.events)
        if self._room != base.room:
            scene = dataclasses.replace(scene, decoration=())  # it hangs on walls that are elsewhere now
        if settings.rugs is not None:
            rugs = tuple(Rug(rug.x, rug.y, rug.length / 2, rug.width / 2) for rug in settings.rugs)
            scene = dataclasses.replace(scene, rugs=rugs)
        if settings.furniture is not None:
            known = {item.name: item for item in (*STOCK_SCENE.furniture, *base.furniture)}
            found = self._items("furniture", settings.furniture, known, STOCK_SCENE.furniture, self._furniture)
            scene = dataclasses.replace(scene, furniture=tuple(found))
        if settings.people is not None:
            cast = {person.name: person for person in (*STOCK_SCENE.people, *base.people)}
            people = self._items("people", settings.people, cast, STOCK_SCENE.people, self._person)
            scene = dataclasses.replace(scene, people=self._named_once(people))
        if settings.start is not None:
            scene = dataclasses.replace(scene, start=_pose(settings.start))
        self._look_at_start(scene)
        self._look_at_events(scene)
        return scene, self._faults

    def _fault(self, path: Path, text: str) -> None:
        self._faults.append(SceneFault(path, text))

    def _items(
        self,
        key: str,
        items: Sequence[str | S],
        known: Mapping[str, P],
        stock: Iterable[P],
        make: Callable[[S, Path], P],
    ) -> list[P]:
        found: list[P] = []
        for index, item in enumerate(items):
            if not isinstance(item, str):
                found.append(make(item, (key, index)))
            elif item == STOCK:
                found += stock
            elif item in known:
                found.append(known[item])
            else:
                what = "person" if key == "people" else "furniture"
                text = f"no {what} {item!r}, there are {[*known, STOCK]}{suggest(item, known)}"
                self._fault((key, index), text)
        return found

    def _named_once(self, people: Sequence[Person]) -> tuple[Person, ...]:
        found: dict[str, Person] = {}
        for person in people:
            if person.name in found:
                self._fault(("people",), f"two people are called {person.name!r}")
            found[person.name] = person
        return tuple(found.values())[:MAX_PEOPLE]

    def _person(self, settings: PersonSettings, path: Path) -> Person:
        if settings.name in FRAMES:
            self._fault((*path, "name"), f"{settings.name!r} is the name of a frame: give the person another one")
        for index, (x, y) in enumerate(settings.path):
            self._look_at_place((*path, "path", index), x, y)
        place = settings.place or PlaceSettings()
        self._look_at_place((*path, "place"), place.x, place.y)
        colours = {key: getattr(settings, key) for key in ("skin", "hair", "shoes")}
        pose = _pose(place)
        clothes = f"person in a {colour_name(settings.shirt)} shirt and {colour_name(settings.trousers)} trousers"
        return Person(
            name=settings.name,
            description=settings.description or clothes.replace("a orange", "an orange"),
            appearance=BodyAppearance(
                height=settings.height,
                shirt=settings.shirt,
                trousers=settings.trousers,
                **{key: colour for key, colour in colours.items() if colour is not None},
            ),
            path=settings.path,
            speed=settings.speed,
            place=(pose.x, pose.y, pose.yaw),
            seat=settings.seat,
        )

    def _furniture(self, settings: FurnitureSettings, path: Path) -> Furniture:
        self._look_at_place((*path, "x"), settings.x, settings.y)
        name = settings.name or f"{settings.kind or 'furniture'}_{path[-1]}"
        yaw = math.radians(settings.yaw_deg)
        if settings.kind is None:
            parts = tuple(Solid(part.shape, part.size, part.at, part.colour, part.solid) for part in settings.parts)
        else:
            parts = made(settings.kind, settings.size, settings.colour)
        return Furniture(name, settings.x, settings.y, yaw, parts).raised(settings.z)

    def _look_at_place(self, path: Path, x: float, y: float) -> None:
        half_x, half_y = self._room.length / 2, self._room.width / 2
        if not (abs(x) < half_x and abs(y) < half_y):
            valid = f"x from {-half_x:g} to {half_x:g} and y from {-half_y:g} to {half_y:g}"
            self._fault(path, f"({x:g}, {y:g}) is outside of the room, which has {valid}")

    def _look_at_start(self, scene: Scene) -> None:
        x, y = scene.start.x, scene.start.y
        self._look_at_place(("start",), x, y)
        for item in scene.furniture:
            if item.covers(x, y, BASE_RADIUS):
                self._fault(("start",), f"the robot would begin at ({x:g}, {y:g}), within {item.name!r}")

    def _look_at_events(self, scene: Scene) -> None:
        names = [person.name for person in scene.people]
        for index, event in enumerate(self._settings.events):
            path: Path = ("events", index)
            if event.person is not None and event.person not in names:
                near = suggest(event.person, names)
                self._fault(path, f"event at {event.at_s:g} s: no person {event.person!r}, there are {names}{near}")
            if event.place is not None:
                self._look_at_place(path, event.x, event.y)
        for event in self._base.events:
            if event.person is not None and event.person not in names:
                text = f"the scene's event at {event.at_s:g} s is about {event.person!r}, there are {names}"
                self._fault(("people",), text)


def _pose(place: PlaceSettings) -> PlanarPose:
    return PlanarPose(place.x, place.y, math.radians(place.yaw_deg))
