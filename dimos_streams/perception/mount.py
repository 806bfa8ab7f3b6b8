"""The camera's place on the robot, from tf."""

from __future__ import annotations

import numpy as np

from dimos_streams.messages.geometry_msgs import Transform
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.perception.geometry import Mount

_MAX_FRAMES = 256


class MountFinder:
    """Follows the transforms from a camera's frame up to the robot's base."""

    def __init__(self, base_frame: str) -> None:
        self._base_frame = base_frame
        self._parents: dict[str, tuple[str, Transform]] = {}

    def add(self, message: TFMessage) -> None:
        """Take in transforms; the newest of each child frame counts, frames beyond a bound are left out."""
        for stamped in message.transforms:
            child = stamped.child_frame_id
            if child in self._parents or len(self._parents) < _MAX_FRAMES:
                self._parents[child] = (stamped.header.frame_id, stamped.transform)

    def find(self, camera_frame: str) -> Mount | None:
        """Return the mount of the camera, or None while a transform on the way up is unknown.

        Raises ValueError for a transform with a zero quaternion.
        """
        position, rotation = np.zeros(3), np.eye(3)
        frame, passed = camera_frame, set[str]()
        while frame != self._base_frame:
            if frame not in self._parents or frame in passed:
                return None
            passed.add(frame)
            frame, transform = self._parents[frame]
            step = _mount(transform)
            position = step.rotation @ position + step.position
            rotation = step.rotation @ rotation
        return Mount(position, rotation)


def _mount(transform: Transform) -> Mount:
    t, q = transform.translation, transform.rotation
    return Mount.of_quaternion((t.x, t.y, t.z), q.x, q.y, q.z, q.w)
