"""Messages as Foxglove shows them: its own schemas for poses, pictures, scans, clouds, maps, frames, boxes, people
and log lines, and plain JSON objects with a generated schema for everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.foxglove.conversion import calls, pictures, scene, spaces
from dimos_streams.foxglove.conversion.form import Form, TopicContext
from dimos_streams.foxglove.conversion.plain import plain
from dimos_streams.foxglove.conversion.schemas import CALL
from dimos_streams.messages.base import Message
from dimos_streams.messages.sensor_msgs import Image

INSTEAD: Mapping[str, tuple[Form, ...]] = {
    "sensor_msgs.CompressedImage": (Form("", "foxglove.CompressedImage", pictures.compressed),),
    "sensor_msgs.CameraInfo": (Form("", "foxglove.CameraCalibration", pictures.calibration),),
    "sensor_msgs.LaserScan": (Form("", "foxglove.LaserScan", spaces.scan),),
    "sensor_msgs.PointCloud2": (Form("", "foxglove.PointCloud", spaces.cloud),),
    "nav_msgs.OccupancyGrid": (Form("", "foxglove.Grid", spaces.grid),),
    "nav_msgs.Path": (Form("", "foxglove.PosesInFrame", spaces.poses),),
    "tf2_msgs.TFMessage": (Form("", "foxglove.FrameTransforms", spaces.frames),),
}
"""Types that a schema of Foxglove holds all of, by name."""
BESIDE: Mapping[str, tuple[Form, ...]] = {
    "nav_msgs.Odometry": (Form("/pose", "foxglove.PoseInFrame", spaces.pose_of_odometry),),
    "geometry_msgs.PoseStamped": (Form("/pose", "foxglove.PoseInFrame", spaces.pose_in_frame),),
    "vision_msgs.Detection2DArray": (
        Form("/boxes", "foxglove.ImageAnnotations", pictures.boxes),
        Form("/scene", "foxglove.SceneUpdate", scene.people),
    ),
    "dimos_streams.ToolStreamEvent": (
        Form("/log", "foxglove.Log", calls.log_line),
        Form("/calls", CALL, calls.call_of),
    ),
    "dimos_streams.ModuleStatus": (Form("/scene", "foxglove.SceneUpdate", scene.places),),
}
"""The forms that are shown beside a message as it is, on topics with a suffix."""


_TREE = frozenset({"tf", "tf_static"})
"""The names of topics whose frames make up the tree in which all is drawn. What says otherwise where they are, as a
simulator's ground truth does, would give frames two parents, for viewers take frames from wherever they come."""


def forms_of(cls: type[Message], topic: str) -> tuple[Form, ...]:
    """The forms in which messages of a class on a topic are shown; none where that depends on the message."""
    if issubclass(cls, Image):
        return ()
    if cls.msg_name == "tf2_msgs.TFMessage" and topic.rpartition("/")[2] not in _TREE:
        return (Form("", cls.msg_name, _as_it_is),)
    return INSTEAD.get(cls.msg_name) or (Form("", cls.msg_name, _as_it_is), *BESIDE.get(cls.msg_name, ()))


def forms_of_message(message: Message, topic: str) -> tuple[Form, ...]:
    """The forms in which a message is shown that came on a topic."""
    return pictures.forms_of_image(message) if isinstance(message, Image) else forms_of(type(message), topic)


def _as_it_is(message: Message, context: TopicContext) -> dict[str, Any]:
    return plain(message)
