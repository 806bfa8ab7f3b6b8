"""Reasons why topics do not come through, in a line each: nobody there, somebody too many, another type, silence."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dimos_streams.ros2.names import shown_type
from dimos_streams.ros2.topics import Route
from dimos_streams.ros2.wire import Endpoint

_OPTIONAL = frozenset({"tf_static"})
"""The streams whose topics not every robot has."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong; ``key`` stays the same while ``text`` may change."""

    key: str
    text: str


def troubles_of(
    routes: Sequence[Route],
    endpoints: Sequence[Endpoint],
    silent_s: Mapping[str, float],
    unmatched: Collection[str],
    skipped: Mapping[str, str],
    publishers: Mapping[str, int],
    where: str,
) -> list[Trouble]:
    """Return everything that is wrong now.

    ``silent_s`` has the streams that are silent for too long, ``unmatched`` those whose topics DDS has not connected
    with anybody's, ``skipped`` why what comes of some can't be decoded, ``publishers`` how many publish each of those
    that one robot alone may; ``where`` is for the text.
    """
    if routes and not endpoints:
        text = f"nobody is heard in DDS {where}: is the robot on, with this ROS_DOMAIN_ID, on this interface?"
        return [Trouble("nobody", text)]
    found = (
        _trouble(route, endpoints)
        or _unconnected(route, endpoints, unmatched)
        or _unusable(route, skipped, silent_s)
        or _silence(route, silent_s)
        or _company(route, publishers)
        for route in routes
        if route.stream.name not in _OPTIONAL or _others(route, endpoints)
    )
    return [trouble for trouble in found if trouble is not None]


def _others(route: Route, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """Those at the other side of a topic."""
    side = "out" if route.from_ros else "in"
    return [other for other in endpoints if other.topic == route.dds_topic and other.direction == side]


def _trouble(route: Route, endpoints: Sequence[Endpoint]) -> Trouble | None:
    name, wanted = route.stream.name, route.struct.name
    others = _others(route, endpoints)
    if not others:
        does = "publishes" if route.from_ros else "listens to"
        return Trouble(f"{name} nobody", f"nobody {does} {route.topic} ({wanted})")
    typed = [other for other in others if other.type_name == route.dds_type]
    if not typed:
        types = ", ".join(dict.fromkeys(shown_type(other.type_name) for other in others))
        text = f"{route.topic} is there, as {types}, not as {wanted}: set topics.{name}.type"
        return Trouble(f"{name} type", text)
    if route.from_ros and not any(route.quality.accepts(other.quality) for other in typed):
        offered, asked = typed[0].quality, route.quality
        text = f"{route.topic} is published {offered}, but {asked} is asked for: set topics.{name}.qos"
        return Trouble(f"{name} qos", text)
    if not route.from_ros and not any(other.quality.accepts(route.quality) for other in typed):
        text = (
            f"{route.topic} is asked for {typed[0].quality}, but {route.quality} is published: set topics.{name}.qos"
        )
        return Trouble(f"{name} qos", text)
    return None


def _unconnected(route: Route, endpoints: Sequence[Endpoint], unmatched: Collection[str]) -> Trouble | None:
    name = route.stream.name
    if name not in unmatched:
        return None
    others = [other for other in _others(route, endpoints) if other.type_name == route.dds_type]
    if others and all(other.demands for other in others):
        settings = ", ".join(dict.fromkeys(setting for other in others for setting in other.demands))
        verb = "published" if route.from_ros else "asked for"
        text = f"{route.topic} is {verb} with {settings}, which nothing here has: leave it out on the robot"
        return Trouble(f"{name} match", text)
    text = (
        f"{route.topic} is there, but does not match: {route.struct.name} has other fields there, or another setting "
        "of DDS differs"
    )
    return Trouble(f"{name} match", text)


def _unusable(route: Route, skipped: Mapping[str, str], silent_s: Mapping[str, float]) -> Trouble | None:
    name = route.stream.name
    if name not in skipped:
        return None
    stands = ": the robot is made to stand" if name in silent_s else ""
    return Trouble(f"{name} unusable", f"what comes on {route.topic} can't be used: {skipped[name]}{stands}")


def _silence(route: Route, silent_s: Mapping[str, float]) -> Trouble | None:
    silent = silent_s.get(route.stream.name)
    if silent is None:
        return None
    how_long = "yet" if silent == math.inf else f"for {silent:.0f} s"
    text = f"{route.topic} has not said anything {how_long}: the robot is made to stand"
    return Trouble(f"{route.stream.name} silent", text)


def _company(route: Route, publishers: Mapping[str, int]) -> Trouble | None:
    count = publishers.get(route.stream.name, 0)
    if count < 2:
        return None
    text = f"{count} publish {route.topic}: unless one has just died, is another robot in this domain?"
    return Trouble(f"{route.stream.name} company", text)
