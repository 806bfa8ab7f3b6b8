"""Generated from lcm_types/vision_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.vision_msgs.BoundingBox2D import BoundingBox2D
from dimos_streams.messages.vision_msgs.BoundingBox3D import BoundingBox3D
from dimos_streams.messages.vision_msgs.Detection2D import Detection2D
from dimos_streams.messages.vision_msgs.Detection2DArray import Detection2DArray
from dimos_streams.messages.vision_msgs.Detection3D import Detection3D
from dimos_streams.messages.vision_msgs.Detection3DArray import Detection3DArray
from dimos_streams.messages.vision_msgs.ObjectHypothesis import ObjectHypothesis
from dimos_streams.messages.vision_msgs.ObjectHypothesisWithPose import ObjectHypothesisWithPose
from dimos_streams.messages.vision_msgs.Point2D import Point2D
from dimos_streams.messages.vision_msgs.Pose2D import Pose2D

__all__ = [
    "BoundingBox2D",
    "BoundingBox3D",
    "Detection2D",
    "Detection2DArray",
    "Detection3D",
    "Detection3DArray",
    "ObjectHypothesis",
    "ObjectHypothesisWithPose",
    "Point2D",
    "Pose2D",
]
