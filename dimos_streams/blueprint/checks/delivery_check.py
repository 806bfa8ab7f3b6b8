"""The check of what a blueprint says about how messages are delivered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.names import absolute
from dimos_streams.blueprint.wiring import Port
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import suggest

VELOCITIES = frozenset({"geometry_msgs.Twist", "geometry_msgs.TwistStamped"})


def late_deliveries(blueprint: Blueprint, ports: Iterable[Port]) -> Iterator[Problem]:
    """Choices by which a robot would move late."""
    types = _types(ports)
    for name, choice in blueprint.delivery.items():
        topic = absolute(name)
        if choice == "reliable" and types.get(topic) in VELOCITIES:
            text = (
                f"delivery of {topic!r} can't be 'reliable': a {types[topic]} that a link has lost would move the"
                " robot when the link is back; use 'latest'"
            )
            yield Problem(text, blueprint.sources.get(name, ""))


def idle_deliveries(blueprint: Blueprint, ports: Iterable[Port]) -> Iterator[Problem]:
    """Choices that change nothing."""
    types = _types(ports)
    for name in blueprint.delivery:
        if (topic := absolute(name)) not in types:
            text = f"delivery of {topic!r} changes nothing: no module publishes on it{suggest(topic, types)}"
            yield Problem(text, blueprint.sources.get(name, ""), severity="warning")


def _types(ports: Iterable[Port]) -> dict[str, str]:
    """The types of the topics on which modules publish."""
    return {port.topic: port.stream.message.msg_name for port in ports if port.stream.direction == "out"}
