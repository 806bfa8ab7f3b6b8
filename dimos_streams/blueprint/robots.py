"""The robots of a blueprint, as far as it says so without its classes being imported."""

from __future__ import annotations

from collections import Counter

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.names import absolute
from dimos_streams.common.names import namespace_of
from dimos_streams.messages.codec import split_channel

ROBOT = "robot"
"""The name of the module that is the robot, in the stock blueprints and in what `new robot` makes."""
OUTSIDE = "outside"
_KINDS = {
    "dimos_streams.robot.simulator:Simulator": "simulated",
    "dimos_streams.ros2.module:Ros2Robot": "ROS 2",
}


def robots_of(blueprint: Blueprint) -> dict[str, int]:
    """Return the number of robots by their kind: ``"simulated"``, ``"ROS 2"``, the class of another module that is
    called ``robot``, or ``"outside"`` where only odometry comes in."""
    kinds = {
        spec.namespace: _KINDS.get(spec.type, spec.type.rpartition(":")[2])
        for name, spec in blueprint.modules.items()
        if name.rpartition("/")[2] == ROBOT
    }
    for channel in blueprint.external:
        topic = split_channel(absolute(channel))[0].removeprefix("/")
        if topic.rpartition("/")[2] == "odom":
            kinds.setdefault(namespace_of(topic), OUTSIDE)
    return dict(Counter(kinds.values()))
