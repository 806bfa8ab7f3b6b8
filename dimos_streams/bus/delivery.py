"""The delivery and the urgency of a channel's messages, on transports that leave the choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Delivery = Literal["reliable", "latest"]
"""``reliable``: what a link loses is sent again, in order, for as long as the sender keeps it. ``latest``: what there
is no room for is thrown away, and never comes late; it suits messages that are soon replaced by newer ones, and those
that must not take effect late, such as velocities."""

_OURS = "dimos_streams."
"""Beginning of the names of types whose messages are about calls. Their senders repeat them until they are taken, so
that nothing depends on the numbers by which a transport notices that something is missing: anybody on a bus can forge
such numbers, and a reader that believes them hears nothing more of the sender whose numbers they were."""
_URGENT = frozenset({"dimos_streams.Hold", "dimos_streams.SkillCancel", "geometry_msgs.Twist"})
_BULKY = ("sensor_msgs.", "nav_msgs.OccupancyGrid", "nav_msgs.Path")


def delivery_of(channel: str, chosen: Mapping[str, Delivery]) -> Delivery:
    """Return what is ``chosen`` for the channel's topic; ``latest`` if nothing is, and for messages that are repeated
    anyway."""
    topic, _, type_name = channel.partition("#")
    return "latest" if type_name.startswith(_OURS) else chosen.get(topic, "latest")


def urgency_of(channel: str) -> Literal["urgent", "usual", "bulky"]:
    """Return the class by which messages are ordered on a link that is too slow for all: nothing waits behind
    pictures and scans."""
    type_name = channel.partition("#")[2]
    if type_name in _URGENT:
        return "urgent"
    return "bulky" if type_name.startswith(_BULKY) else "usual"
