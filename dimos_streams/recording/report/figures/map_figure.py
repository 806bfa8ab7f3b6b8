"""The map: obstacles, zones, way-points, goals, people, and the ways of robots with the moments of the key frames."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dimos_streams.common.names import namespace_of_topic
from dimos_streams.common.polygon import Point, centre_of
from dimos_streams.recording.report.figures.axes import round_step
from dimos_streams.recording.report.markup import cut, h, number, with_attributes
from dimos_streams.recording.report.model import KeyFrame, MapScene, Recorded
from dimos_streams.recording.report.occupancy import CELL_M
from dimos_streams.recording.report.way import Stand, Way

_WIDTH, _MOST_HIGH = 720.0, 560.0
_LEAST_M = 3.0
_MARGIN_M = 0.5
_MOST_M = 2000.0
"""The largest extent of the map, in metres: a place farther away would make a point of everything else."""
_POINTS = 2000
_JUMP_M = 3.0
COLOURS = 6
"""Classes ``c0`` … that the style has for robots, and for people and lines of plots."""


@dataclass(frozen=True, slots=True)
class _Plane:
    """Metres to the drawing's units; y goes up in metres and down on the drawing."""

    left: float
    top: float
    scale: float
    width: float
    height: float

    @classmethod
    def around(cls, points: list[Point]) -> _Plane:
        xs, ys = [x for x, _ in points], [y for _, y in points]
        middle = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
        wide = min(_MOST_M, max(_LEAST_M, max(xs) - min(xs)) + 2 * _MARGIN_M)
        high = min(_MOST_M, max(_LEAST_M, max(ys) - min(ys)) + 2 * _MARGIN_M)
        scale = min(_WIDTH / wide, _MOST_HIGH / high)
        wide = _WIDTH / scale
        return cls(middle[0] - wide / 2, middle[1] + high / 2, scale, _WIDTH, high * scale)

    def __call__(self, point: Point) -> tuple[float, float]:
        return (point[0] - self.left) * self.scale, (self.top - point[1]) * self.scale

    def text(self, points: list[Point]) -> str:
        """Points as SVG has them."""
        return " ".join(f"{number(x)},{number(y)}" for x, y in map(self, points))


def map_figure(recorded: Recorded) -> Element | None:
    """The map, or None if nothing is known of any place."""
    points = list(_everything(recorded))
    if not points:
        return None
    plane = _Plane.around(points)
    robots = {robot: index % COLOURS for index, robot in enumerate(recorded.ways)}
    drawing = h(
        "svg",
        _grid(plane),
        _obstacles(plane, recorded.scene),
        _zones(plane, recorded.scene),
        _people(plane, recorded.scene),
        _targets(plane, recorded.scene),
        [_way(plane, way, colour) for way, colour in zip(recorded.ways.values(), robots.values(), strict=True)],
        [_mark(plane, recorded, index, frame) for index, frame in enumerate(recorded.frames, start=1)],
        _scale_bar(plane),
        role="img",
        aria_label=_in_words(recorded),
        class_="map",
    )
    box = f"0 0 {number(plane.width)} {number(plane.height)}"
    return with_attributes(drawing, {"viewBox": box})


def _everything(recorded: Recorded) -> Iterator[Point]:
    """Yield all places that the map is to show."""
    for way in recorded.ways.values():
        yield from ((stand.x, stand.y) for stand in way.stands)
    scene = recorded.scene
    for zone in scene.zones:
        yield from zone.polygon
    yield from (point for _, point in (*scene.waypoints, *scene.goals))
    for seen in scene.people.values():
        yield from seen
    yield from ((x * CELL_M, y * CELL_M) for x, y in scene.obstacles)


def _in_words(recorded: Recorded) -> str:
    ways = [
        f"{robot or 'the robot'} went {way.distance_m:.1f} m and ended at ({way.newest.x:.1f}, {way.newest.y:.1f})"
        for robot, way in recorded.ways.items()
        if way.newest is not None
    ]
    return f"Map: {'; '.join(ways) or 'no robot has said where it is'}"


def _grid(plane: _Plane) -> Element:
    step = round_step(plane.width / plane.scale / 12)
    lines = []
    for index in range(math.ceil(plane.left / step), math.floor((plane.left + plane.width / plane.scale) / step) + 1):
        x = plane((index * step, 0.0))[0]
        lines.append(h("line", x1=x, x2=x, y1=0.0, y2=plane.height))
    bottom = plane.top - plane.height / plane.scale
    for index in range(math.ceil(bottom / step), math.floor(plane.top / step) + 1):
        y = plane((0.0, index * step))[1]
        lines.append(h("line", x1=0.0, x2=plane.width, y1=y, y2=y))
    return h("g", lines, class_="grid")


def _obstacles(plane: _Plane, scene: MapScene) -> Element:
    """Return all cells in one path, a square each."""
    side = max(1.0, CELL_M * plane.scale)
    squares = []
    for x, y in scene.obstacles:
        left, top = plane((x * CELL_M, (y + 1) * CELL_M))
        squares.append(f"M{number(left)} {number(top)}h{number(side)}v{number(side)}h-{number(side)}z")
    return h("path", d="".join(squares), class_="obstacles")


def _zones(plane: _Plane, scene: MapScene) -> Element:
    found = []
    for zone in scene.zones:
        x, y = plane(centre_of(zone.polygon))
        found.append(h("polygon", h("title", f"restricted: {zone.name}"), points=plane.text(list(zone.polygon))))
        found.append(h("text", cut(zone.name, 40), x=x, y=y, text_anchor="middle"))
    return h("g", found, class_="zones")


def _people(plane: _Plane, scene: MapScene) -> Element:
    groups = []
    for index, (label, seen) in enumerate(scene.people.items()):
        dots = [h("circle", cx=x, cy=y, r=2.5) for x, y in map(plane, seen)]
        groups.append(h("g", h("title", f"seen: {label}"), dots, class_=f"person p{index % COLOURS}"))
    return h("g", groups)


def _targets(plane: _Plane, scene: MapScene) -> Element:
    found = []
    for name, point in scene.waypoints:
        x, y = plane(point)
        found.append(h("circle", h("title", f"way-point {name}"), cx=x, cy=y, r=9.0, class_="waypoint"))
        found.append(h("text", name, x=x, y=y + 4, text_anchor="middle", class_="waypoint"))
    for skill, point in scene.goals:
        x, y = plane(point)
        cross = f"M{number(x - 6)} {number(y - 6)}l12 12m0-12l-12 12"
        found.append(h("path", h("title", f"goal of {skill}"), d=cross, class_="goal"))
    return h("g", found)


def _way(plane: _Plane, way: Way, colour: int) -> Element:
    first, last = way.stands[0], way.newest or way.stands[-1]
    x, y = plane((first.x, first.y))
    lines = [h("polyline", points=plane.text(part)) for part in _parts(way) if len(part) > 1]
    return h(
        "g",
        lines,
        h("circle", h("title", "where it began"), cx=x, cy=y, r=5.0),
        _arrow(plane, last),
        class_=f"way c{colour}",
    )


def _parts(way: Way) -> list[list[Point]]:
    """Return the way as lines, without the stretches that the robot did not drive."""
    stands = way.stands[:: -(-len(way.stands) // _POINTS)]
    if way.newest is not None and stands[-1] is not way.newest:
        stands = [*stands, way.newest]
    parts: list[list[Point]] = [[]]
    for stand in stands:
        at = stand.x, stand.y
        if way.jumps and parts[-1] and math.dist(parts[-1][-1], at) > _JUMP_M:
            parts.append([])
        parts[-1].append(at)
    return parts


def _arrow(plane: _Plane, stand: Stand) -> Element:
    x, y = plane((stand.x, stand.y))
    corners = [(11.0, 0.0), (-7.0, 7.0), (-3.5, 0.0), (-7.0, -7.0)]
    cos, sin = math.cos(stand.yaw), math.sin(stand.yaw)
    points = " ".join(f"{number(x + a * cos - b * sin)},{number(y - a * sin - b * cos)}" for a, b in corners)
    return h("polygon", h("title", "where it ended"), points=points)


def _mark(plane: _Plane, recorded: Recorded, index: int, frame: KeyFrame) -> Element | None:
    way = recorded.ways.get(namespace_of_topic(frame.topic, recorded.namespaces))
    stand = None if way is None else way.at(frame.captions[0][0])
    if stand is None:
        return None
    x, y = plane((stand.x, stand.y))
    return h(
        "g",
        h("title", frame.captions[0][1]),
        h("circle", cx=x, cy=y, r=7.5),
        h("text", str(index), x=x, y=y + 3.5, text_anchor="middle"),
        class_="mark",
    )


def _scale_bar(plane: _Plane) -> Element:
    metres = round_step(plane.width / plane.scale / 12)
    long, y = metres * plane.scale, plane.height - 12
    bar = h("path", d=f"M12 {number(y - 4)}v4h{number(long)}v-4")
    return h("g", bar, h("text", f"{metres:g} m", x=long + 18, y=y + 1), class_="scale")
