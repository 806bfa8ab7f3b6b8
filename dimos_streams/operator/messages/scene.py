"""The things that a map shows besides robots: the parts of the floor and the way ahead, as modules know them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel

SCENE = "scene"
"""The topic of a module's state under which it says so."""
MAX_BYTES = 3000
"""Maximum size of the JSON that one module says in each of its heartbeats, in bytes."""

Point = Annotated[tuple[float, float], Field(description="x and y, metres")]


class ZoneView(FrozenModel):
    """A part of the floor."""

    name: str
    polygon: tuple[Point, ...]
    """Its corners; the last is joined to the first."""
    restricted: bool = True
    """True if a robot enters it only by an approved plan."""


class WaypointView(FrozenModel):
    """A point that a robot goes to by its name or number."""

    name: str
    x: float
    y: float


class GoalView(FrozenModel):
    """The place to which a robot goes now."""

    x: float
    y: float


class SceneView(FrozenModel):
    """Zones, way-points, goal and way of one namespace, in metres."""

    zones: tuple[ZoneView, ...] = ()
    waypoints: tuple[WaypointView, ...] = ()
    goal: GoalView | None = None
    path: tuple[Point, ...] = ()
    """The points that it is to go through, in order."""
    frame_id: str = "odom"


def scene_state(scene: SceneView, most: int = MAX_BYTES) -> dict[str, Any]:
    """The state by which a module reports a scene, of about ``most`` bytes as JSON at most; empty for an empty scene.
    If the scene is too large, ends of its path are left out first, then of its way-points, then of its zones."""
    for name in ("path", "waypoints", "zones"):
        while (items := getattr(scene, name)) and len(scene.model_dump_json().encode()) > most:
            scene = scene.model_copy(update={name: items[: len(items) // 2]})
    said = scene.model_dump(mode="json", exclude_defaults=True)
    return {SCENE: said} if said.keys() - {"frame_id"} else {}


def joined(scenes: Iterable[SceneView]) -> SceneView:
    """Return one scene of those of several modules of a namespace. Of goals and ways the first counts.

    It is in the frame of the first module that knows zones, else of the first one. What others say in another frame
    is left out: it would be shown at places where it is not.
    """
    found = list(scenes)
    first = next((each for each in found if each.zones), found[0] if found else SceneView())
    alike = [each for each in found if each.frame_id == first.frame_id]
    moving = next((each for each in alike if each.goal is not None), None) or next(
        (each for each in alike if each.path), SceneView()
    )
    return SceneView(
        zones=tuple(zone for each in alike for zone in each.zones),
        waypoints=tuple(point for each in alike for point in each.waypoints),
        goal=moving.goal,
        path=moving.path,
        frame_id=first.frame_id,
    )
