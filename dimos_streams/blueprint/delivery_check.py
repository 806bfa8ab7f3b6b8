"""The check of what a blueprint says about how messages are delivered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.names import absolute
from dimos_streams.blueprint.wiring import Port
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import suggest

_MOVE = frozenset({"geometry_msgs.Twist", "geometry_msgs.TwistStamped"})


def delivery_problems(blueprint: Blueprint, ports: Sequence[Port]) -> Iterator[Problem]:
    """Choices that change nothing, and those by which a robot would move late."""
    types = {port.topic: port.stream.message.msg_name for port in ports if port.stream.direction == "out"}
    for name, choice in blueprint.delivery.items():
        topic, where = absolute(name), blueprint.sources.get(name, "")
        if topic not in types:
            text = f"delivery of {topic!r} changes nothing: no module publishes on it{suggest(topic, types)}"
            yield Problem(text, where, severity="warning")
        elif choice == "reliable" and types[topic] in _MOVE:
            text = (
                f"delivery of {topic!r} can't be 'reliable': a {types[topic]} that a link has lost would move the"
                " robot when the link is back; use 'latest'"
            )
            yield Problem(text, where)
