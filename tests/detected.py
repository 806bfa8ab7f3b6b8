"""One thing in a picture, as a detector sends it."""

from __future__ import annotations

from dimos_streams.messages.geometry_msgs import Point
from dimos_streams.messages.std_msgs import Header
from dimos_streams.messages.vision_msgs import (
    BoundingBox2D,
    Detection2D,
    ObjectHypothesis,
    ObjectHypothesisWithPose,
    Point2D,
    Pose2D,
)


def detection(
    *labels: str,
    id: str = "1",
    at: tuple[float, float] = (160.0, 120.0),
    size: tuple[float, float] = (40.0, 120.0),
    place: Point | None = None,
    score: float = 0.9,
    header: Header | None = None,
) -> Detection2D:
    """A box around ``at`` in pixels, with everything that the thing in it may be; ``place`` is where that is."""
    results = [ObjectHypothesisWithPose(hypothesis=ObjectHypothesis(class_id=each, score=score)) for each in labels]
    for result in results:
        result.pose.pose.position = place or Point()
    box = BoundingBox2D(center=Pose2D(position=Point2D(x=at[0], y=at[1])), size_x=size[0], size_y=size[1])
    return Detection2D(header=header or Header(), results=results, bbox=box, id=id)
