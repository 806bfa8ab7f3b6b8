"""What Foxglove is shown of messages: its own schemas' values, and where a file's messages come from."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.wiring import channels_of
from dimos_streams.foxglove.address import LAYOUT
from dimos_streams.foxglove.call_table import MAX_CALLS, MAX_CLOSED, TracedCalls
from dimos_streams.foxglove.conversion.message_views import MessageViews
from dimos_streams.foxglove.conversion.schemas import SCHEMAS, schema_named
from dimos_streams.foxglove.conversion.views import forms_of, forms_of_message
from dimos_streams.foxglove.orders import ORDERS, OrderAnswer
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import encode, split_channel, type_named
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamEvent
from dimos_streams.messages.geometry_msgs import (
    Point,
    Pose,
    PoseStamped,
    PoseWithCovariance,
    Transform,
    TransformStamped,
    Vector3,
)
from dimos_streams.messages.index import TYPE_NAMES
from dimos_streams.messages.nav_msgs import MapMetaData, OccupancyGrid, Odometry
from dimos_streams.messages.nav_msgs import Path as Way
from dimos_streams.messages.sensor_msgs import CameraInfo, CompressedImage, Image, LaserScan, PointCloud2, PointField
from dimos_streams.messages.std_msgs import Bool, Header, Time
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.vision_msgs import Detection2D, Detection2DArray
from dimos_streams.operator.messages.scene import GoalView, SceneView, WaypointView, ZoneView, scene_state
from dimos_streams.recording.cut import LogPart
from dimos_streams.recording.export.mcap import Exported, export_mcap
from dimos_streams.recording.metadata import CHANNEL, describe
from dimos_streams.recording.reader import LogReader
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.wire.layout import INSTANCE
from tests.detected import detection
from tests.recording.logs import START, write_log

VALIDATOR = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "number", lambda _, value: value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    ),
)
"""Takes null for a number, as viewers do, whose schemas know no alternatives."""
HEADER = Header(stamp=Time(sec=5, nsec=70), frame_id="camera")
STAMPED = {"timestamp": {"sec": 5, "nsec": 70}, "frame_id": "camera"}


def shown(message: Message, topic: str = "/topic") -> dict[str, tuple[str, dict[str, Any]]]:
    """By the topic's suffix: the schema and the object, which fits it."""
    found = {}
    for form, value in MessageViews().shown(topic, message):
        VALIDATOR(schema_named(form.schema)).validate(json.loads(json.dumps(value, allow_nan=False)))
        found[form.suffix] = (form.schema, value)
    return found


def box(
    id: str, *labels: str, x: float = 10.0, y: float = 20.0, width: float = 4.0, height: float = 6.0
) -> Detection2D:
    return detection(*labels, id=id, at=(x, y), size=(width, height), score=0.0)


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
    views = shown(event)
    assert views[""][1]["data"] == data
    schema, line = views["/log"]
    assert schema == "foxglove.Log"
    assert line == {
        "timestamp": {"sec": 7, "nsec": 3000},
        "level": level,
        "message": f"{type}: there",
        "name": "go [c1]",
        "file": "m",
        "line": 4,
    }


def test_a_log_line_writes_out_what_nobody_sees() -> None:
    line = shown(ToolStreamEvent(type="update", text="go\u202e\ufe0f\nthere ❤\ufe0f"))["/log"][1]
    assert line["message"] == "update: go\\u202e\\ufe0f\nthere ❤\ufe0f"


def test_an_event_whose_data_is_damaged_is_shown_all_the_same() -> None:
    for text, decoded in (("", {}), ("{", None), ("[]", [])):
        views = shown(ToolStreamEvent(type="close", data_json=text))
        plain, line = views[""][1], views["/log"][1]
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


def test_a_raw_picture_that_claims_to_be_huge_is_not_shown() -> None:
    assert shown(Image(encoding="rgb8", width=8192, height=4096))
    assert not shown(Image(encoding="rgb8", width=100_000, height=100_000)), "viewers take memory for what it claims"


def test_poses_frames_scans_and_cameras() -> None:
    pose = Pose(position=Point(x=1.0, y=2.0, z=math.nan))
    expected = {"x": 1.0, "y": 2.0, "z": None}
    with_pose = [
        PoseStamped(header=HEADER, pose=pose),
        Odometry(header=HEADER, pose=PoseWithCovariance(pose=pose)),
    ]
    for message in with_pose:
        views = shown(message)
        assert views["/pose"][0] == "foxglove.PoseInFrame"
        assert views["/pose"][1]["pose"]["position"] == expected, "JSON has no number for it"
        assert views["/pose"][1]["frame_id"] == "camera"
        assert views[""][0] == message.msg_name
    moved = TransformStamped(header=HEADER, child_frame_id="base", transform=Transform(translation=Vector3(x=3.0)))
    (frame,) = shown(TFMessage(transforms=[moved]), "/robot1/tf")[""][1]["transforms"]
    assert (frame["parent_frame_id"], frame["child_frame_id"]) == ("camera", "base")
    assert (frame["translation"]["x"], frame["timestamp"]) == (3.0, STAMPED["timestamp"])
    truth = shown(TFMessage(transforms=[moved]), "/ground_truth")
    assert truth[""][0] == "tf2_msgs.TFMessage", "no frame has two parents"
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


def exported(log_path: Path, target: Path, part: LogPart | None = None) -> Exported:
    with LogReader(log_path) as log:
        return export_mcap(log, target, part or LogPart())


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
    assert done == Exported(messages=3, channels=2, unknown={"/other": 1}, damaged={"/a#std_msgs.Bool": 2})
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


def test_the_messages_are_counted_of_all_channels_that_the_file_has(tmp_path: Path) -> None:
    from mcap.reader import make_reader

    call = ToolStreamEvent(call_id="1", type="progress", skill="follow", data_json=json.dumps({"step": 1}))
    events = [
        (START, "/tool_streams#dimos_streams.ToolStreamEvent", encode(call)),
        (START + 1, "/odom#nav_msgs.Odometry", encode(Odometry(header=HEADER))),
    ]
    done = exported(write_log(tmp_path / "a.lcmlog", events), tmp_path / "a.mcap")
    with (tmp_path / "a.mcap").open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    assert summary.statistics is not None
    assert done.channels == summary.statistics.channel_count > len(events)
    assert done.messages == summary.statistics.message_count > len(events)


def test_what_has_only_messages_of_unknown_types_is_a_file_too(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.lcmlog", [(START, CHANNEL, b"of somebody else"), (START, "/other", b"x")])
    assert exported(path, tmp_path / "a.mcap") == Exported(unknown={"/other": 1})
    assert (tmp_path / "a.mcap").exists()


def read_by_viewers(schema: dict[str, Any]) -> None:
    """Viewers understand of JSON Schema objects with properties, lists of one type that is no list, and one type for
    each field. For anything else they refuse the channel, as the reader of Lichtblick does."""
    assert schema["type"] == "object"
    for name, field in schema["properties"].items():
        assert field["type"] in ("boolean", "string", "number", "integer", "object", "array"), (name, field)
        assert field.get("contentEncoding") in (None, "base64"), (name, field)
        one = field["items"] if field["type"] == "array" else field
        assert one["type"] != "array" or field is not one, (name, field)
        if one["type"] == "object":
            read_by_viewers(one)


def test_every_schema_is_one_that_viewers_read() -> None:
    for name in (*TYPE_NAMES, *SCHEMAS):
        read_by_viewers(schema_named(name))
    for order in ORDERS:
        read_by_viewers(order.request.model_json_schema())
    read_by_viewers(OrderAnswer.model_json_schema())


def test_every_type_fits_the_schemas_that_it_is_shown_by() -> None:
    for cls in map(type_named, TYPE_NAMES):
        shown(cls())
        assert forms_of(cls, "/topic") in ((), forms_of_message(cls(), "/topic")), (
            "it is known before any message comes"
        )


def test_maps_clouds_and_ways() -> None:
    info = MapMetaData(resolution=0.5, width=2, height=1, origin=Pose(position=Point(x=-1.0)))
    schema, value = shown(OccupancyGrid(header=HEADER, info=info, data=[-1, 100]))[""]
    assert (schema, base64.b64decode(value["data"])) == ("foxglove.Grid", b"\xff\x64")
    assert (value["column_count"], value["row_stride"], value["cell_size"]) == (2, 2, {"x": 0.5, "y": 0.5})
    assert value["pose"]["position"]["x"] == -1.0

    fields = [PointField(name="x", offset=0, datatype=7), PointField(name="ring", offset=4, datatype=4)]
    cloud = PointCloud2(header=HEADER, fields=fields, point_step=6, data=b"\0" * 6, width=1, height=1)
    schema, value = shown(cloud)[""]
    assert (schema, value["point_stride"]) == ("foxglove.PointCloud", 6)
    assert [(field["name"], field["offset"], field["type"]) for field in value["fields"]] == [
        ("x", 0, 7),
        ("ring", 4, 3),
    ]
    cloud.is_bigendian = True
    assert shown(cloud) == {}, "Foxglove reads no such"

    way = [PoseStamped(pose=Pose(position=Point(x=float(x)))) for x in range(2)]
    schema, value = shown(Way(header=HEADER, poses=way))[""]
    assert (schema, [pose["position"]["x"] for pose in value["poses"]]) == ("foxglove.PosesInFrame", [0.0, 1.0])


def test_people_stand_where_they_were_seen() -> None:
    seen, unplaced, without_depth = box("7", "person in red"), box("8", "person"), box("10", "person")
    seen.results[0].pose.pose.position = Point(x=2.0, y=-1.0)
    unplaced.results[0].pose.pose.position = Point(x=math.nan)
    schema, value = shown(Detection2DArray(header=HEADER, detections=[seen, unplaced, box("9"), without_depth]))[
        "/scene"
    ]
    (person,) = value["entities"]
    assert (schema, person["frame_id"], person["timestamp"]) == (
        "foxglove.SceneUpdate",
        "base_link",
        STAMPED["timestamp"],
    )
    assert person["cylinders"][0]["pose"]["position"]["x"] == 2.0
    assert [text["text"] for text in person["texts"]] == ["7 person in red"]
    assert (person["frame_locked"], person["lifetime"]["sec"]) == (False, 0), "who is not seen again vanishes"


def test_places_are_drawn_as_long_as_a_module_tells_of_them() -> None:
    zone = ZoneView(name="stairs", polygon=((0.0, 0.0), (2.0, 0.0), (2.0, 2.0)))
    view = SceneView(
        zones=(zone, zone.model_copy(update={"name": "", "restricted": False})),
        waypoints=(WaypointView(name="1", x=3.0, y=0.0),),
        goal=GoalView(x=4.0, y=1.0),
        path=((4.0, 1.0), (5.0, 1.0)),
    )
    status = ModuleStatus(utime=9_000_000, module="robot1/patrol", state_json=json.dumps(scene_state(view)))
    schema, value = shown(status)["/scene"]
    (drawn,) = value["entities"]
    assert (schema, drawn["id"], drawn["frame_id"]) == ("foxglove.SceneUpdate", "robot1/patrol", "robot1/odom")
    assert [line["color"]["r"] for line in drawn["lines"]] == [0.9, 0.5, 1.0], "restricted, not restricted, the way"
    assert [text["text"] for text in drawn["texts"]] == ["stairs", "1"]
    assert [one["pose"]["position"]["x"] for one in drawn["cylinders"]] == [3.0, 4.0]
    assert drawn["lifetime"]["sec"] == 3, "it vanishes with its module, and with its last word of it"
    for state in ("", "{}", "[]", "{", '{"scene": {"zones": 5}}'):
        assert "/scene" not in shown(ModuleStatus(module="patrol", state_json=state))


def test_events_make_calls_whose_numbers_can_be_plotted() -> None:
    conversion = MessageViews()

    def rows(seq: int, type: str, **data: Any) -> list[dict[str, Any]]:
        event = ToolStreamEvent(utime=seq * 500_000, call_id="c1", seq=seq, type=type, data_json=json.dumps(data))
        event.module, event.skill = "robot1/follow", "robot1_follow_person"
        return [value for form, value in conversion.shown("/tool_streams", event) if form.suffix == "/calls"]

    def after(seq: int, type: str, **data: Any) -> dict[str, Any]:
        (row,) = rows(seq, type, **data)
        return row

    after(1, "open", arguments={"description": "red"}, parent="m1")
    now = after(2, "progress", distance_m=2.5, bearing_deg=None, track="7", places=[1, 2], **{INSTANCE: "a-b"})
    assert now["progress"] == {"distance_m": 2.5, "bearing_deg": None, "track": "7"}
    assert (now["state"], now["robot"], now["parent"], now["seconds"]) == ("open", "robot1", "m1", 0.5)
    assert rows(2, "progress", distance_m=9.0) == [], "it came twice"
    assert after(3, "update")["progress"]["distance_m"] == 2.5
    closed = after(4, "close", outcome="completed")
    assert (closed["state"], closed["outcome"], closed["arguments"]) == (
        "closed",
        "completed",
        {"description": "red"},
    )
    assert closed["progress"]["distance_m"] == 2.5
    for seq, type in ((4, "close"), (2, "progress"), (1, "open"), (5, "update")):
        assert rows(seq, type) == [], "a call that is over is not opened again"
    report = ToolStreamEvent(type="update", caller="monitor", skill="report")
    assert [form.suffix for form, _ in conversion.shown("/tool_streams", report)] == [""]


def test_of_many_calls_that_never_end_the_newest_are_kept() -> None:
    table = TracedCalls()
    for number in range(MAX_CALLS + 10):
        table.after(ToolStreamEvent(call_id=f"c{number}", seq=1, type="open"), {})
    assert len(table) == MAX_CALLS


def test_of_many_calls_that_are_over_the_newest_are_known() -> None:
    table = TracedCalls()
    closes = [ToolStreamEvent(call_id=f"c{number}", seq=2, type="close") for number in range(MAX_CLOSED + 1)]
    assert all(table.after(close, {}) is not None for close in closes)
    assert [table.after(close, {}) is not None for close in (closes[1], closes[0])] == [False, True]
    assert len(table) == 0


def test_the_layout_has_what_a_run_shows() -> None:
    layout = json.loads(LAYOUT.read_text())
    panels: list[str] = []

    def collect(node: Any) -> None:
        if isinstance(node, str):
            panels.append(node)
        else:
            collect(node["first"])
            collect(node["second"])

    collect(layout["layout"])
    assert sorted(panels) == sorted(layout["configById"])
    topics = {
        topic + form.suffix
        for topic, name in map(split_channel, (*channels_of(resolve("follow-person")), EVENTS, STATUS))
        for form in forms_of_message(type_named(name)(), topic)
    }
    services = {
        config["serviceName"] for panel, config in layout["configById"].items() if panel.startswith("CallService")
    }
    assert services == {order.name for order in ORDERS}
    used = set(re.findall(r'"(/[a-z0-9_/]+)', LAYOUT.read_text())) - services
    assert used - topics <= {"/battery", "/map", "/path"}, "what only some robots have"
