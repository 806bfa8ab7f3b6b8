"""People where they were seen, and the places of modules: zones, way-points, goals and ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.names import namespace_of
from dimos_streams.common.polygon import centre_of
from dimos_streams.foxglove.conversion.form import TopicContext, Value, stamp_of, timestamp
from dimos_streams.foxglove.conversion.spaces import at
from dimos_streams.messages.detections import place_of, title_of
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.operator.messages.scene import SCENE, SceneView

_BODY_FRAME = "base_link"
"""The frame of the points of detections."""
_SEEN_S = 0.5
"""Seconds for which somebody who is not seen again stays in the picture."""
_SCENE_S = 3.0
"""Seconds for which the places of one heartbeat last; a module sends several meanwhile."""
_TALL_M, _WIDE_M = 1.7, 0.45
_LINE_STRIP, _LINE_LOOP = 0, 1
Colour = Mapping[str, float]
_GREEN: Colour = {"r": 0.1, "g": 0.8, "b": 0.3, "a": 0.7}
_BLUE: Colour = {"r": 0.2, "g": 0.5, "b": 1.0, "a": 0.9}
_YELLOW: Colour = {"r": 1.0, "g": 0.8, "b": 0.1, "a": 0.9}
_RED: Colour = {"r": 0.9, "g": 0.1, "b": 0.1, "a": 0.9}
_GREY: Colour = {"r": 0.5, "g": 0.5, "b": 0.5, "a": 1.0}
_SHAPES = ("arrows", "cubes", "spheres", "cylinders", "lines", "triangles", "texts", "models")


def people(detections: Detection2DArray, context: TopicContext) -> Value:
    """A cylinder with a name for each thing of which the place is known."""
    frame, stamp = context.frame(_BODY_FRAME), stamp_of(detections.header)["timestamp"]
    seen = []
    for one in detections.detections:
        place = place_of(one)
        if place is None:
            continue
        drawing = _Drawing()
        drawing.cylinder(place.real, place.imag, _WIDE_M, _TALL_M, _GREEN)
        drawing.text(title_of(one), place.real, place.imag, _TALL_M + 0.2)
        seen.append(drawing.entity(f"{context.robot}/seen/{one.id}", frame, stamp, _SEEN_S))
    return {"deletions": [], "entities": seen}


def places(status: ModuleStatus, context: TopicContext) -> Value | None:
    """The places in a module's status, or None if it has none."""
    scene = _scene_of(status)
    if scene is None:
        return None
    drawing = _Drawing()
    for zone in scene.zones:
        drawing.line(_LINE_LOOP, zone.polygon, _RED if zone.restricted else _GREY)
        drawing.text(zone.name, *centre_of(zone.polygon), 0.1)
    for waypoint in scene.waypoints:
        drawing.cylinder(waypoint.x, waypoint.y, 0.2, 0.05, _BLUE)
        drawing.text(waypoint.name, waypoint.x, waypoint.y, 0.2)
    if scene.goal is not None:
        drawing.cylinder(scene.goal.x, scene.goal.y, 0.3, 0.3, _YELLOW)
    drawing.line(_LINE_STRIP, scene.path, _YELLOW)
    frame = TopicContext(namespace_of(status.module)).frame(scene.frame_id)
    return {
        "deletions": [],
        "entities": [drawing.entity(status.module, frame, timestamp(status.utime), _SCENE_S, moves=True)],
    }


def _scene_of(status: ModuleStatus) -> SceneView | None:
    """Return the scene in a module's status, or None if there is none or it can't be read."""
    try:
        state = parse_json(status.state_json) if status.state_json else {}
        scene = state.get(SCENE) if isinstance(state, dict) else None
        return None if scene is None else SceneView.model_validate(scene)
    except ValueError:
        return None


class _Drawing:
    """Shapes that belong together."""

    def __init__(self) -> None:
        self._shapes: dict[str, list[Value]] = {name: [] for name in _SHAPES}

    def line(self, kind: int, corners: Sequence[tuple[float, float]], colour: Colour) -> None:
        """Add a line on the floor, unless it has fewer than two corners."""
        if len(corners) < 2:
            return
        points = [{"x": x, "y": y, "z": 0.02} for x, y in corners]
        more: Value = {"scale_invariant": False, "color": colour, "colors": [], "indices": []}
        self._shapes["lines"].append(
            {"type": kind, "pose": at(0.0, 0.0), "thickness": 0.05, "points": points, **more}
        )

    def cylinder(self, x: float, y: float, wide_m: float, tall_m: float, colour: Colour) -> None:
        """Add a cylinder that stands on the floor."""
        size = {"x": wide_m, "y": wide_m, "z": tall_m}
        shape = {"pose": at(x, y, tall_m / 2), "size": size, "bottom_scale": 1.0, "top_scale": 1.0, "color": colour}
        self._shapes["cylinders"].append(shape)

    def text(self, text: str, x: float, y: float, z: float) -> None:
        """Add a text that turns to the viewer, unless it is empty."""
        if text:
            how: Value = {"billboard": True, "font_size": 14.0, "scale_invariant": True, "color": _GREY}
            self._shapes["texts"].append({"pose": at(x, y, z), "text": text, **how})

    def entity(self, id: str, frame: str, stamp: Value, lifetime_s: float, *, moves: bool = False) -> Value:
        """The shapes as one thing, which replaces the one of that ``id``. One that does not move with its frame stays
        where that was at the stamp."""
        lasting = timestamp(round(lifetime_s * 1e6))
        head = {"timestamp": stamp, "frame_id": frame, "id": id, "lifetime": lasting, "frame_locked": moves}
        return {**head, "metadata": [], **self._shapes}
