"""Generated from lcm_types/tf2_msgs/TFMessage.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs.TransformStamped import TransformStamped

class TFMessage(Message):
    """Frames and where they stand."""

    transforms_length: int
    transforms: list[TransformStamped]

    def __init__(
        self,
        *,
        transforms: list[TransformStamped] = ...,
    ) -> None: ...
