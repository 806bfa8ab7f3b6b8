"""Generated from lcm_types/geometry_msgs/Vector3.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Vector3(Message):
    """A free vector: a velocity (m/s or rad/s), an acceleration (m/s^2), a translation (m)."""

    x: float
    y: float
    z: float

    def __init__(
        self,
        *,
        x: float = 0.0,
        y: float = 0.0,
        z: float = 0.0,
    ) -> None: ...
