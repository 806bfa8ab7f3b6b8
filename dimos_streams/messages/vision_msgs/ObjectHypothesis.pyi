"""Generated from lcm_types/vision_msgs/ObjectHypothesis.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class ObjectHypothesis(Message):
    """What an object may be."""

    class_id: str
    score: float

    def __init__(
        self,
        *,
        class_id: str = "",
        score: float = 0.0,
    ) -> None: ...
