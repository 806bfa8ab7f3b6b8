"""What a detection says of a thing, for all who read it."""

from __future__ import annotations

import math

import pytest

from dimos_streams.messages.detections import MAX_LABEL, box_of, labels_of, place_of, title_of
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseWithCovariance
from dimos_streams.messages.vision_msgs import (
    BoundingBox2D,
    Detection2D,
    ObjectHypothesis,
    ObjectHypothesisWithPose,
    Point2D,
    Pose2D,
)


def detected(at: Point | None = None, id: str = "7", label: str = "person") -> Detection2D:
    pose = PoseWithCovariance(pose=Pose(position=at or Point()))
    result = ObjectHypothesisWithPose(hypothesis=ObjectHypothesis(class_id=label), pose=pose)
    bbox = BoundingBox2D(center=Pose2D(position=Point2D(x=10.0, y=20.0)), size_x=4.0, size_y=6.0)
    return Detection2D(id=id, results=[result], bbox=bbox)


@pytest.mark.parametrize(
    ("at", "place"),
    [
        (Point(x=2.0, y=-1.0), 2 - 1j),
        (Point(x=2.0, y=-1.0, z=math.nan), 2 - 1j),
        (Point(z=1.2), 0j),
        (Point(), None),
        (Point(x=math.nan), None),
        (Point(y=-math.inf), None),
        (Point(x=1e10), None),
    ],
)
def test_the_place_is_known_unless_the_message_has_none(at: Point, place: complex | None) -> None:
    assert place_of(detected(at)) == place


def test_what_says_nothing_of_a_thing_has_no_place() -> None:
    assert place_of(Detection2D()) is None


def test_the_box_lies_around_its_centre() -> None:
    assert box_of(detected()) == (8.0, 17.0, 12.0, 23.0)


def test_the_title_has_track_and_label() -> None:
    assert title_of(detected()) == "7 person"
    assert title_of(detected(id="")) == "person"
    assert title_of(Detection2D(id="9")) == "9 ?"
    assert title_of(Detection2D()) == "?"


def test_of_a_label_without_end_the_beginning_is_read() -> None:
    endless = detected(label="person in red " + "x" * 100_000)
    ((label, score),) = labels_of(endless)
    assert (len(label), score) == (MAX_LABEL, 0.0)
    assert label.startswith("person in red")
    assert len(title_of(endless)) == MAX_LABEL + 2
