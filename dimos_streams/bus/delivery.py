"""How the messages of a channel are delivered, on transports that leave the choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Delivery = Literal["reliable", "latest"]
"""``reliable``: what a link loses is sent again, in order, for as long as the sender keeps it. ``latest``: what there
is no room for is thrown away, and never comes late: for whatever is soon replaced by something newer, and for what
must not be done any more once its time is over, such as velocities."""

_RELIABLE = frozenset(
    {"dimos_streams.ToolStreamEvent", "dimos_streams.ToolStreamRequest", "dimos_streams.SkillCancel"}
)
"""Not calls: they are repeated until somebody reacts, and one that comes after its sender has given it up must not
begin."""
_URGENT = frozenset({"dimos_streams.Hold", "dimos_streams.SkillCancel", "geometry_msgs.Twist"})
_BULKY = ("sensor_msgs.", "nav_msgs.OccupancyGrid", "nav_msgs.Path")


def delivery_of(channel: str, chosen: Mapping[str, Delivery]) -> Delivery:
    """``chosen`` by topic, else by the type of the channel's messages."""
    topic, _, type_name = channel.partition("#")
    return chosen.get(topic) or ("reliable" if type_name in _RELIABLE else "latest")


def urgency_of(channel: str) -> Literal["urgent", "usual", "bulky"]:
    """What goes before what on a link that is too slow for all: nothing waits behind pictures and scans."""
    type_name = channel.partition("#")[2]
    if type_name in _URGENT:
        return "urgent"
    return "bulky" if type_name.startswith(_BULKY) else "usual"
