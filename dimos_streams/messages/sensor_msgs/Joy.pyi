"""Generated from lcm_types/sensor_msgs/Joy.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import FloatArray, IntArray, Message
from dimos_streams.messages.std_msgs.Header import Header

class Joy(Message):
    """How a joystick is held."""

    axes_length: int
    buttons_length: int
    header: Header
    axes: FloatArray
    buttons: IntArray

    def __init__(
        self,
        *,
        header: Header = ...,
        axes: FloatArray = ...,
        buttons: IntArray = ...,
    ) -> None: ...
