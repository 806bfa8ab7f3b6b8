"""Doubts about what readable messages say: units, frames and angles that a robot's program got wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs import PoseStamped, Quaternion
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import LaserScan

BASE_FRAME = "base_link"
_FARTHEST_M = 200.0
"""The range, in metres, that no lidar of a robot exceeds."""
_MORE_THAN_ROUND = math.tau + 0.1
_OFF_NORM = 0.05
"""The difference of a quaternion's length from 1 up to which it is rounding."""


def doubts(message: Message, *, from_outside: bool) -> Iterator[str]:
    """Yield what is hardly so. ``from_outside`` tells that no module of the blueprint sends it, which would know the
    frame of what it sends."""
    if isinstance(message, LaserScan):
        yield from _of_scan(message)
        if from_outside and message.header.frame_id.rpartition("/")[2] != BASE_FRAME:
            frame = message.header.frame_id
            yield f"its frame is {frame!r}, but its angles are taken for angles of {BASE_FRAME!r}"
    elif isinstance(message, Odometry):
        yield from _of_orientation(message.pose.pose.orientation)
        if message.child_frame_id and message.child_frame_id == message.header.frame_id:
            yield f"it is the pose of {message.child_frame_id!r} in itself: header.frame_id is to stand still"
    elif isinstance(message, PoseStamped):
        yield from _of_orientation(message.pose.orientation)


def _of_scan(scan: LaserScan) -> Iterator[str]:
    round_rad = abs(scan.angle_increment) * (len(scan.ranges) - 1)
    if round_rad > _MORE_THAN_ROUND:
        yield f"its rays, {scan.angle_increment:.3g} rad apart, go round more than once: degrees?"
    if scan.range_max > _FARTHEST_M:
        yield f"its range_max is {scan.range_max:g} m: millimetres?"


def _of_orientation(q: Quaternion) -> Iterator[str]:
    norm = math.hypot(q.x, q.y, q.z, q.w)
    if norm == 0.0:
        yield "its orientation is all zero, which is no quaternion: nobody knows the robot's heading"
    elif abs(norm - 1.0) > _OFF_NORM:
        yield f"its orientation is no unit quaternion: its length is {norm:.3g}, not 1"
