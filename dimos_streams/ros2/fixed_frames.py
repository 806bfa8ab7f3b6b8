"""Transforms that do not change, which ROS says once and keeps for those who come later."""

from __future__ import annotations

from dimos_streams.messages.geometry_msgs import TransformStamped
from dimos_streams.messages.std_msgs import Time
from dimos_streams.messages.tf2_msgs import TFMessage

_MAX_FRAMES = 256


class FixedFrames:
    """The transforms of ``/tf_static``, of all nodes of a robot, for a bus that keeps nothing: it has to be told of
    them again and again."""

    def __init__(self) -> None:
        self._by_child: dict[str, TransformStamped] = {}

    def add(self, message: TFMessage) -> None:
        """Take in transforms; the newest of each child frame counts, frames beyond a bound are left out."""
        for transform in message.transforms:
            child = transform.child_frame_id
            if child in self._by_child or len(self._by_child) < _MAX_FRAMES:
                transform.header.stamp = Time()  # they hold at all times
                self._by_child[child] = transform

    @property
    def message(self) -> TFMessage | None:
        """All of them, or None if there are none."""
        return TFMessage(transforms=list(self._by_child.values())) if self._by_child else None
