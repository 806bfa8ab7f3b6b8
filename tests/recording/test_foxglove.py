"""What Foxglove is shown of messages: its own schemas' values, and where a file's messages come from."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.messages.geometry_msgs import (
    Point,
    Pose,
    PoseStamped,
    PoseWithCovariance,
    Transform,
    TransformStamped,
    Vector3,
)
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import CameraInfo, CompressedImage, Image, LaserScan
from dimos_streams.messages.std_msgs import Bool, Header, Time
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.vision_msgs import (
    BoundingBox2D,
    Detection2D,
    Detection2DArray,
    ObjectHypothesis,
    ObjectHypothesisWithPose,
    Point2D,
    Pose2D,
)
from dimos_streams.recording.cut import Part
from dimos_streams.recording.export.foxglove import schema_named, views_of
from dimos_streams.recording.export.mcap import Exported, export_mcap
from dimos_streams.recording.metadata import CHANNEL, describe
from dimos_streams.recording.reader import LogReader
from tests.recording.logs import START, write_log

HEADER = Header(stamp=Time(sec=5, nsec=70), frame_id="camera")
STAMPED = {"timestamp": {"sec": 5, "nsec": 70}, "frame_id": "camera"}


def shown(message: Message) -> dict[str, tuple[str, dict[str, Any]]]:
    """By the topic's suffix: the schema and the object, which fits it."""
    found = {view.suffix: (view.schema, view.value) for view in views_of(message)}
    for schema, value in found.values():
        jsonschema.validate(json.loads(json.dumps(value, allow_nan=False)), schema_named(schema))
    return found


def box(
    id: str, *labels: str, x: float = 10.0, y: float = 20.0, width: float = 4.0, height: float = 6.0
) -> Detection2D:
    results = [ObjectHypothesisWithPose(hypothesis=ObjectHypothesis(class_id=label)) for label in labels]
    bbox = BoundingBox2D(center=Pose2D(position=Point2D(x=x, y=y)), size_x=width, size_y=height)
    return Detection2D(results=results, bbox=bbox, id=id)


def test_boxes_lie_around_what_was_found_with_its_name_at_a_corner() -> None:
    detections = [box("7", "person", "dog"), box("", "chair"), box("9")]
    schema, value = shown(Detection2DArray(header=HEADER, detections=detections))["/boxes"]
    assert schema == "foxglove.ImageAnnotations"
    corners = [(8.0, 17.0), (12.0, 17.0), (12.0, 23.0), (8.0, 23.0)]
    for outline in value["points"]:
        assert [(point["x"], point["y"]) for point in outline["points"]] == corners
        assert (outline["type"], outline["timestamp"]) == (2, STAMPED["timestamp"]), "a closed line"
    assert [text["text"] for text in value["texts"]] == ["7 person", "chair", "9 ?"]
    assert [text["position"] for text in value["texts"]] == [{"x": 8.0, "y": 17.0}] * 3


@pytest.mark.parametrize("nowhere", [{"x": math.nan}, {"y": -math.inf}, {"width": math.nan}, {"height": math.inf}])
def test_a_box_that_lies_nowhere_is_not_drawn(nowhere: dict[str, float]) -> None:
    _, value = shown(Detection2DArray(detections=[box("7", "ghost", **nowhere), box("8", "chair")]))["/boxes"]
    assert [text["text"] for text in value["texts"]] == ["8 chair"]
    assert len(value["points"]) == 1


@pytest.mark.parametrize(
    ("type", "data", "level"),
    [
        ("update", {}, 2),
        ("close", {"outcome": "completed"}, 2),
        ("close", {"outcome": "cancelled"}, 3),
        ("close", {"outcome": "failed"}, 4),
        ("close", {"outcome": "failed", "result": {"outcome": "completed"}}, 4),
        ("close", {"outcome": "failed", "result": "cancelled"}, 4),
    ],
)
def test_events_of_calls_are_log_lines(type: str, data: dict[str, Any], level: int) -> None:
    event = ToolStreamEvent(
        utime=7_000_003,
        call_id="c1",
        seq=4,
        type=type,
        module="m",
        skill="go",
        text="there",
        data_json=json.dumps(data),
    )
    (_, plain), (schema, line) = shown(event).values()
    assert plain["data"] == data
    assert schema == "foxglove.Log"
    assert line == {
        "timestamp": {"sec": 7, "nsec": 3000},
        "level": level,
        "message": f"{type}: there",
        "name": "go [c1]",
        "file": "m",
        "line": 4,
    }


def test_an_event_whose_data_is_damaged_is_shown_all_the_same() -> None:
    for text, decoded in (("", {}), ("{", None), ("[]", [])):
        (_, plain), (_, line) = shown(ToolStreamEvent(type="close", data_json=text)).values()
        assert (plain["data_json"], plain.get("data"), line["level"]) == (text, decoded, 4)


def test_pictures_are_compressed_or_raw() -> None:
    jpeg = {**STAMPED, "data": base64.b64encode(b"\xff\xd8").decode(), "format": "jpeg"}
    assert shown(Image(header=HEADER, encoding="jpeg", data=b"\xff\xd8")) == {"": ("foxglove.CompressedImage", jpeg)}
    assert shown(Image(encoding="png", data=b""))[""][0] == "foxglove.CompressedImage"
    assert shown(CompressedImage(header=HEADER, format="jpeg", data=b"\xff\xd8")) == {
        "": ("foxglove.CompressedImage", jpeg)
    }
    depth = Image(header=HEADER, encoding="16UC1", width=1, height=2, step=2, data=b"\1\2\3\4")
    raw = {**STAMPED, "encoding": "16UC1", "width": 1, "height": 2, "step": 2, "data": "AQIDBA=="}
    assert shown(depth) == {"": ("foxglove.RawImage", raw)}
    for encoding in ("bgr8", "rgba8", "bgra8", "mono16", "32FC1"):
        schema, value = shown(Image(encoding=encoding, width=1, height=1, step=4, data=b"\1\2\3\4"))[""]
        assert (schema, value["encoding"]) == ("foxglove.RawImage", encoding)


def test_poses_frames_scans_and_cameras() -> None:
    pose = Pose(position=Point(x=1.0, y=2.0, z=math.nan))
    expected = {"x": 1.0, "y": 2.0, "z": None}
    with_pose = [
        PoseStamped(header=HEADER, pose=pose),
        Odometry(header=HEADER, pose=PoseWithCovariance(pose=pose)),
    ]
    for message in with_pose:
        views = {view.suffix: view for view in views_of(message)}
        assert views["/pose"].schema == "foxglove.PoseInFrame"
        assert views["/pose"].value["pose"]["position"] == expected, "JSON has no number for it"
        assert views["/pose"].value["frame_id"] == "camera"
        assert views[""].schema == message.msg_name
    moved = TransformStamped(header=HEADER, child_frame_id="base", transform=Transform(translation=Vector3(x=3.0)))
    (frame,) = shown(TFMessage(transforms=[moved]))[""][1]["transforms"]
    assert (frame["parent_frame_id"], frame["child_frame_id"]) == ("camera", "base")
    assert (frame["translation"]["x"], frame["timestamp"]) == (3.0, STAMPED["timestamp"])
    scan = LaserScan(
        header=HEADER, angle_min=-1.0, angle_max=0.5, ranges=[1.5, math.inf, math.nan], intensities=[2.0]
    )
    _, value = shown(scan)[""]
    assert (value["start_angle"], value["end_angle"]) == (-1.0, 0.5)
    assert (value["ranges"], value["intensities"]) == ([1.5, 0.0, 0.0], [2.0])
    assert value["pose"]["position"] == {"x": 0.0, "y": 0.0, "z": 0.0}, "in its own frame"
    assert value["pose"]["orientation"] == {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}
    blind = LaserScan(angle_min=math.nan, angle_max=math.inf, ranges=[1.0], intensities=[math.nan])
    _, value = shown(blind)[""]
    assert (value["start_angle"], value["end_angle"], value["intensities"]) == (0.0, 0.0, [0.0])
    numbers = {"D": [0.5], "K": [1.0] * 9, "R": [2.0] * 9, "P": [3.0] * 12}
    info = CameraInfo(header=HEADER, width=4, height=3, distortion_model="plumb_bob", **numbers)  # type: ignore[arg-type]
    _, value = shown(info)[""]
    assert shown(CameraInfo(D=[math.nan]))[""][1]["D"] == [0.0]
    assert value == {**STAMPED, "width": 4, "height": 3, "distortion_model": "plumb_bob", **numbers}


def exported(log_path: Path, target: Path, part: Part | None = None) -> Exported:
    with LogReader(log_path) as log:
        return export_mcap(log, target, part or Part())


def test_a_file_says_what_it_has_and_what_was_left_out(tmp_path: Path) -> None:
    from mcap.reader import make_reader

    events = [
        (START, CHANNEL, describe(seed=5).encoded()),
        (START + 1, CHANNEL, describe(seed=6).encoded()),
        (START + 2, "/a#std_msgs.Bool", encode(Bool(data=True))),
        (START + 3, "/a#std_msgs.Bool", b"damaged"),
        (START + 4, "/a#std_msgs.Bool", b"damaged"),
        (START + 5, "/other", b"x"),
        (START + 6, "/a#std_msgs.Bool", encode(Bool(data=False))),
        (START + 7, "/b#std_msgs.Bool", encode(Bool(data=True))),
    ]
    done = exported(write_log(tmp_path / "a.lcmlog", events), tmp_path / "a.mcap")
    assert done == Exported(messages=3, channels=2, left_out={"/a#std_msgs.Bool": 2, "/other": 1})
    with (tmp_path / "a.mcap").open("rb") as file:
        reader = make_reader(file)
        found = [
            (channel.topic, message.sequence, message.log_time, message.publish_time, json.loads(message.data))
            for _, channel, message in reader.iter_messages()
        ]
        (metadata,) = reader.iter_metadata()
        summary = reader.get_summary()
    assert found == [
        (topic, number, (START + number) * 1000, (START + number) * 1000, {"data": value})
        for number, topic, value in ((2, "/a", True), (6, "/a", False), (7, "/b", True))
    ]
    assert (metadata.name, metadata.metadata["seed"]) == ("recording", "5")
    assert summary is not None
    assert len(summary.schemas) == 1, "one for all of a type"


def test_what_has_only_messages_of_unknown_types_is_a_file_too(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.lcmlog", [(START, CHANNEL, b"of somebody else"), (START, "/other", b"x")])
    assert exported(path, tmp_path / "a.mcap") == Exported(left_out={"/other": 1})
    assert (tmp_path / "a.mcap").exists()
