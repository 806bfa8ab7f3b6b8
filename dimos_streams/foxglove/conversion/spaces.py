"""Poses, frames, scans, clouds of points and maps."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from dimos_streams.foxglove.conversion.form import TopicContext, Value, stamp_of
from dimos_streams.foxglove.conversion.pictures import finite
from dimos_streams.foxglove.conversion.plain import plain
from dimos_streams.messages.geometry_msgs import Pose, PoseStamped, TransformStamped
from dimos_streams.messages.nav_msgs import OccupancyGrid, Odometry, Path
from dimos_streams.messages.sensor_msgs import LaserScan, PointCloud2
from dimos_streams.messages.tf2_msgs import TFMessage

_INT_8 = 2
_NUMERIC_TYPES: Mapping[int, int] = {1: 2, 2: 1, 3: 4, 4: 3, 5: 6, 6: 5, 7: 7, 8: 8}
"""Foxglove's numbers of the types of a cloud's fields, by ROS's."""


def pose_of_odometry(odometry: Odometry, context: TopicContext) -> Value:
    """A robot's pose by its odometry."""
    return {**context.stamped(odometry.header), "pose": pose(odometry.pose.pose)}


def pose_in_frame(message: PoseStamped, context: TopicContext) -> Value:
    """A pose in its frame."""
    return {**context.stamped(message.header), "pose": pose(message.pose)}


def poses(path: Path, context: TopicContext) -> Value:
    """A path as the poses that lead along it, which are in the path's frame."""
    return {**context.stamped(path.header), "poses": [pose(each.pose) for each in path.poses]}


def frames(message: TFMessage, context: TopicContext) -> Value:
    """Transforms between frames."""
    return {"transforms": [_transform(one, context) for one in message.transforms]}


def _transform(one: TransformStamped, context: TopicContext) -> Value:
    return {
        **stamp_of(one.header),
        "parent_frame_id": context.frame(one.header.frame_id),
        "child_frame_id": context.frame(one.child_frame_id),
        "translation": plain(one.transform.translation),
        "rotation": plain(one.transform.rotation),
    }


def scan(message: LaserScan, context: TopicContext) -> Value:
    """One turn of a lidar, in its own frame. What has no finite range is 0, which viewers don't draw."""
    return {
        **context.stamped(message.header),
        "pose": at(0.0, 0.0),
        "start_angle": finite(message.angle_min),
        "end_angle": finite(message.angle_max),
        "ranges": [finite(value) for value in message.ranges],
        "intensities": [finite(value) for value in message.intensities],
    }


def cloud(message: PointCloud2, context: TopicContext) -> Value | None:
    """A cloud of points, or None if it is big-endian, which Foxglove does not know."""
    if message.is_bigendian:
        return None
    fields = [
        {"name": field.name, "offset": field.offset, "type": _NUMERIC_TYPES.get(field.datatype, 0)}
        for field in message.fields
    ]
    return {
        **context.stamped(message.header),
        "pose": at(0.0, 0.0),
        "point_stride": message.point_step,
        "fields": fields,
        "data": base64.b64encode(message.data).decode(),
    }


def grid(message: OccupancyGrid, context: TopicContext) -> Value:
    """A map of cells."""
    cells = bytes(value & 0xFF for value in message.data)
    resolution = finite(message.info.resolution)
    return {
        **context.stamped(message.header),
        "pose": pose(message.info.origin),
        "column_count": message.info.width,
        "cell_size": {"x": resolution, "y": resolution},
        "row_stride": message.info.width,
        "cell_stride": 1,
        "fields": [{"name": "occupancy", "offset": 0, "type": _INT_8}],
        "data": base64.b64encode(cells).decode(),
    }


def pose(message: Pose) -> Value:
    """A pose; numbers that are not finite are null."""
    return {"position": plain(message.position), "orientation": plain(message.orientation)}


def at(x: float, y: float, z: float = 0.0) -> Value:
    """A pose at a place, not turned."""
    return {"position": {"x": x, "y": y, "z": z}, "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}}
