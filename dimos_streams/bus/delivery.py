"""How the messages of a channel are delivered, on transports that leave the choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Delivery = Literal["reliable", "latest"]
"""``reliable``: what a link loses is sent again, in order, for as long as the sender keeps it. ``latest``: what there
is no room for is thrown away, and never comes late: for whatever is soon replaced by something newer, and for what
must not be done any more once its time is over, such as velocities."""

_OURS = "dimos_streams."
"""What is said about calls. Whoever says it repeats it until it is taken, so that nothing hangs on the numbers by
which a transport notices that something is missing: whoever is on a bus can forge them, and who believes them hears
nothing more of the one whose numbers they were."""
_URGENT = frozenset({"dimos_streams.Hold", "dimos_streams.SkillCancel", "geometry_msgs.Twist"})
_BULKY = ("sensor_msgs.", "nav_msgs.OccupancyGrid", "nav_msgs.Path")


def delivery_of(channel: str, chosen: Mapping[str, Delivery]) -> Delivery:
    """``chosen`` by topic, but for what repeats itself; without a choice it is the latest that counts."""
    topic, _, type_name = channel.partition("#")
    return "latest" if type_name.startswith(_OURS) else chosen.get(topic, "latest")


def urgency_of(channel: str) -> Literal["urgent", "usual", "bulky"]:
    """What goes before what on a link that is too slow for all: nothing waits behind pictures and scans."""
    type_name = channel.partition("#")[2]
    if type_name in _URGENT:
        return "urgent"
    return "bulky" if type_name.startswith(_BULKY) else "usual"
