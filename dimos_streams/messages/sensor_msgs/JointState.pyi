"""Generated from lcm_types/sensor_msgs/JointState.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, Message
from dimos_streams.messages.std_msgs.Header import Header

class JointState(Message):
    """Where joints are and how they move; each array is empty or as long as the names."""

    name_length: int
    position_length: int
    velocity_length: int
    effort_length: int
    header: Header
    name: list[str]
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray

    def __init__(
        self,
        *,
        header: Header = ...,
        name: list[str] = ...,
        position: FloatArray = ...,
        velocity: FloatArray = ...,
        effort: FloatArray = ...,
    ) -> None: ...
