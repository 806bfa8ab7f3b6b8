"""How much may differ: by field, by topic, by file, by command line; and where two messages differ by more."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dimos_streams.errors import UserError
from dimos_streams.messages import registry
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.messages.geometry_msgs import PoseStamped, Twist, Vector3
from dimos_streams.messages.nav_msgs import Path as PathMessage
from dimos_streams.messages.sensor_msgs import PointCloud2, PointField
from dimos_streams.messages.std_msgs import Bool, Header, String, Time
from dimos_streams.regression.differences import (
    FieldDifference,
    message_differences,
    numbers_of,
    shown_value,
    value_differences,
)
from dimos_streams.regression.named_fields import check_fields
from dimos_streams.regression.tolerances import EXACT, Tolerances, load_tolerances, with_settings

VEL = "/vel#geometry_msgs.Twist"


@pytest.mark.parametrize(
    ("tolerances", "path", "value", "allowed"),
    [
        (Tolerances(), "x", 5.0, 0.0),
        (Tolerances(absolute=0.1), "x", 5.0, 0.1),
        (Tolerances(relative=0.1), "x", -5.0, 0.5),
        (Tolerances(absolute=0.1, relative=0.1), "x", 5.0, 0.5),
        (Tolerances(absolute=0.1, relative=0.1), "x", 0.5, 0.1),
        (Tolerances(absolute=0.1, relative=0.1), "x", math.inf, 0.0),
        (Tolerances(absolute=0.1, relative=0.1), "x", math.nan, 0.0),
        (Tolerances(absolute=0.1, fields={"x": 0.01}), "x", 5.0, 0.01),
        (Tolerances(absolute=0.1, fields={"x": 0.01}), "y", 5.0, 0.1),
        (Tolerances(absolute=0.1, fields={"x": 0.01}), "x.y.z", 5.0, 0.01),
        (Tolerances(fields={"x": 1, "x.y": 2, "x.y.z": 3}), "x.y.q", 5.0, 2),
        (Tolerances(fields={"poses.x": 0.3}), "poses[17].x", 5.0, 0.3),
        (Tolerances(fields={"x": 1, "/vel:x": 2}), "x", 5.0, 2),
        (Tolerances(fields={"/other:x": 2}), "x", 5.0, 0.0),
        (Tolerances(fields={"/vel:x": 2, "x.y": 1}), "x.y", 5.0, 1),
    ],
)
def test_how_much_a_number_may_differ(tolerances: Tolerances, path: str, value: float, allowed: float) -> None:
    assert tolerances.allowed(VEL, path, value) == allowed


def test_what_the_command_line_says_comes_on_top() -> None:
    base = Tolerances(time_s=0.5, absolute=0.1, relative=0.2, fields={"x": 1, "y": 2})
    changed = with_settings(base, ["0.3", "x=4", "/odom:pose=0"])
    assert changed == base.model_copy(update={"absolute": 0.3, "fields": {"x": 4.0, "y": 2, "/odom:pose": 0.0}})
    assert with_settings(base, []) == base
    assert with_settings(base, [], time_s=0.0) == base.model_copy(update={"time_s": 0.0})
    assert with_settings(base, ["0"]).absolute == 0.0


SENT = {VEL, "/odom#nav_msgs.Odometry", "/path#nav_msgs.Path", "/own#somebodys.Own"}


@pytest.mark.parametrize(
    "name",
    [
        "linear.x", "linear", "/vel:angular.z", "/odom:pose", "pose.covariance", "poses.pose.position.x",
        "data.bearing_deg", "text", "/tool_streams:data.speed", "/skill_calls:arguments_json",
    ],
)  # fmt: skip
def test_fields_that_something_has_may_be_named(name: str) -> None:
    check_fields(Tolerances(fields={name: 0.1}), SENT, {VEL})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("liner.x", "tool event of this run has a field 'liner.x'; did you mean 'linear.x'? (valid: linear.x"),
        ("", "of this run has a field ''"),
        ("x", "has a field 'x'; did you mean 'linear.x' or 'angular.x'? (valid: linear.x, linear.y, linear.z, "),
        ("header.stamp", "stamps go by time_s"),
        ("poses[0].pose", "has a field 'poses[0].pose'"),
        ("/vell:linear.x", "no topic is called '/vell'; did you mean '/vel'? (valid: /odom, /own, /path,"),
        ("/vel:pose", "topic '/vel' has no field 'pose' (valid: linear.x, "),
        ("/own:x", "topic '/own' has no field 'x' (valid: none: it is compared as a whole"),
    ],
)  # fmt: skip
def test_a_field_that_nothing_has_is_an_error(name: str, why: str) -> None:
    with pytest.raises(UserError) as error:
        check_fields(Tolerances(fields={"linear": 1.0, name: 0.1}), SENT, {VEL})
    assert str(error.value).startswith(f"tolerance of {name!r}: ")
    assert why in str(error.value)


def own_type(name: str, field: str, kind: str) -> type[Message]:
    """A class such as ``messages generate`` makes of a definition with one field."""
    lcm = {"__slots__": [field], "__typenames__": [kind], "__dimensions__": [None]}
    msg_name = f"own_msgs.{name}"
    return type(name, (Message,), {"__module__": msg_name, "msg_name": msg_name, **lcm})


def test_a_field_may_be_named_inside_a_type_that_no_stream_has(monkeypatch: pytest.MonkeyPatch) -> None:
    line = own_type("Line", "count", "int32_t")
    order = own_type("Order", "line", "own_msgs.Line")
    monkeypatch.setitem(sys.modules, "own_msgs", ModuleType("own_msgs"))
    monkeypatch.setitem(sys.modules, "own_msgs.Line", ModuleType("own_msgs.Line"))
    monkeypatch.setattr(sys.modules["own_msgs.Line"], "Line", line, raising=False)
    monkeypatch.setattr(registry, "_used", {"own_msgs.Order": order})
    check_fields(Tolerances(fields={"/orders:line.count": 0.1}), {"/orders#own_msgs.Order"}, set())


@pytest.mark.parametrize("setting", ["-1", "x=-0.1", "nan", "x=nan", "inf", "x=inf"])
def test_a_setting_that_would_allow_nothing_or_everything_says_what_is_valid(setting: str) -> None:
    with pytest.raises(UserError) as error:
        with_settings(EXACT, [setting])
    assert str(error.value) == f"--tolerance {setting!r}: the number must be finite, and at least 0"


@pytest.mark.parametrize("setting", ["", "x", "x=", "x=wide", "=1"])
def test_a_setting_that_is_no_tolerance_is_an_error(setting: str) -> None:
    with pytest.raises(UserError, match="expected a number, or FIELD=NUMBER") as error:
        with_settings(EXACT, [setting])
    assert repr(setting) in str(error.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"time_s: -1", "time_s: it must be at least 0"),
        (b"time_s: .inf", "time_s: it must be a finite number"),
        (b"absolute: .inf", "absolute: it must be a finite number"),
        (b"absolute: true", "absolute: it must be a number"),
        (b"relative: .inf", "relative: it must be a finite number"),
        (b"unmatched: true", "unmatched: it must be a number"),
        (b"fields: {x: .inf}", "fields.x: it must be a finite number"),
        (b"fields: {x: true}", "fields.x: it must be a number"),
        (b"fields: {x: wide}", "fields.x: it must be a number"),
        (b"fields: {x: -1}", "fields.x: it must be at least 0"),
        (b"fields: {x: .nan}", "fields.x: it must be a finite number"),
        (b"times: 1", ":1: unknown key 'times' in tolerances; did you mean 'time_s'?"),
        *(
            (text, ":1: it must be an object, names with their values")
            for text in (b"- 1", b"[]", b"0", b"false", b"''")
        ),
        (b"a: [", ":1: not valid YAML"),
        (b"\xff\xfe\xff", ":1: it is not UTF-8 (byte 0xff)"),
        (None, "there is no tolerances file"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, text: bytes | None, why: str) -> None:
    path = tmp_path / "tolerances.yaml"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(UserError, match="tolerances") as error:
        load_tolerances(path)
    assert why in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_an_empty_file_allows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tolerances.yaml"
    path.write_text("")
    assert load_tolerances(path) == EXACT


def stamped(x: float = 0.0, sec: int = 1, nsec: int = 0) -> PoseStamped:
    pose = PoseStamped(header=Header(stamp=Time(sec=sec, nsec=nsec)))
    pose.pose.position.x = x
    return pose


def reported(recorded: Message, replayed: Message, allow: Tolerances = EXACT) -> list[str]:
    channel = channel_name("/topic", type(recorded))
    return [str(one) for one in message_differences(channel, encode(recorded), encode(replayed), allow)]


def test_messages_differ_field_by_field() -> None:
    slow, fast = (Twist(linear=Vector3(x=x, y=y, z=0.0)) for x, y in ((0.5, 0.0), (0.75, 2.0)))
    assert reported(slow, slow) == []
    assert reported(slow, fast) == ["linear.x: recorded 0.5, replayed 0.75", "linear.y: recorded 0, replayed 2"]
    assert reported(slow, fast, Tolerances(fields={"/topic:linear.x": 0.25})) == ["linear.y: recorded 0, replayed 2"]
    found = message_differences(VEL, encode(fast), encode(slow), EXACT)
    assert [(one.field, one.amount) for one in found] == [("linear.x", 0.25), ("linear.y", 2.0)]
    assert reported(Bool(data=True), Bool(data=False)) == ["data: recorded true, replayed false"]
    assert reported(String(data="a"), String(data="b")) == ['data: recorded "a", replayed "b"']


def test_entries_of_arrays_are_compared_one_by_one() -> None:
    one, two = (PathMessage(poses=[stamped(1.0), stamped(x), stamped(3.0)]) for x in (2.0, 2.5))
    assert reported(one, two) == ["poses[1].pose.position.x: recorded 2, replayed 2.5"]
    assert reported(one, two, Tolerances(fields={"poses.pose": 0.5})) == []
    assert reported(one, PathMessage(poses=[stamped(1.0)]))[-1] == "poses: recorded 3 entries, replayed 1 entries"


@pytest.mark.parametrize(
    ("later_ns", "time_s", "agrees"),
    [
        (1, 0.0, True),
        (1_000, 0.0, False),
        (200_000_000, 0.2, True),
        (500_000_000, 0.0, False),
        (500_000_000, 0.5, True),
        (500_002_000, 0.5, False),
        (499_000_000, 0.5, True),
    ],
)
def test_stamps_may_differ_by_the_time_that_outputs_may_be_late(later_ns: int, time_s: float, agrees: bool) -> None:
    allow = Tolerances(time_s=time_s, absolute=9, relative=9)
    now = 1_700_000_000
    shown = f"header.stamp: recorded {now}.750000, replayed {now + (750_000_000 + later_ns) / 1e9:.6f}"
    later = divmod(750_000_000 + later_ns, 1_000_000_000)
    found = reported(stamped(sec=now, nsec=750_000_000), stamped(sec=now + later[0], nsec=later[1]), allow)
    assert found == ([] if agrees else [shown])
    one, two = (SkillCall(utime=now * 1_000_000 + after, call_id="c") for after in (0, later_ns // 1000))
    found = reported(one, two, allow)
    assert found == ([] if agrees else [f"utime: recorded {now}.000000, replayed {now + later_ns / 1e9:.6f}"])


def test_what_is_no_known_message_is_compared_as_bytes() -> None:
    for channel in ("POSE", "/x#no.such.Type", VEL):
        assert message_differences(channel, b"same", b"same", EXACT) == []
        (found,) = message_differences(channel, b"one", b"other", EXACT)
        assert str(found) == "bytes: recorded <3 bytes>, replayed <5 bytes>"


def test_of_a_message_whose_type_was_defined_otherwise_the_reason_is_said() -> None:
    given = encode(Twist())
    (found,) = message_differences(VEL, b"otherwise", given, EXACT)
    why = f"its fingerprint is {b'otherwis'.hex()}, not {given[:8].hex()}: another type or definition"
    assert str(found) == f"bytes: recorded <9 bytes> ({why}), replayed <{len(given)} bytes>"


def test_texts_agree_if_only_their_numbers_differ_a_little() -> None:
    allow = Tolerances(relative=0.1, fields={"exact": 0.0})
    for recorded, replayed in (("10 m, 20 m", "11 m, 18 m"), ("1e3", "1.05E+3"), ("-1.0", "-1.05")):
        assert value_differences(VEL, "text", recorded, replayed, allow) == []
        assert len(value_differences(VEL, "exact", recorded, replayed, allow)) == 1
    for recorded, replayed in (("10 m, 20 m", "10 m, 23 m"), ("10 m", "10 m, 10 m"), ("10 m", "10 km"), ("1", "")):
        assert value_differences(VEL, "text", recorded, replayed, allow) == [
            FieldDifference("text", f'"{recorded}"', f'"{replayed}"')
        ]


def test_long_texts_are_shortened() -> None:
    (found,) = value_differences(VEL, "text", "x" * 500, "y" * 118, EXACT)
    assert found.recorded == '"' + "x" * 119 + "..."
    assert found.replayed == '"' + "y" * 118 + '"'


def test_values_are_shown_as_json() -> None:
    assert json.loads(shown_value(["it's", None, True, {"at": (0.5, math.nan)}])) == [
        "it's", None, True, {"at": [0.5, None]}
    ]  # fmt: skip
    assert (shown_value(0.1 + 0.2), shown_value([0.1 + 0.2, {"x": 1e-12 / 3}])) == (
        "0.3",
        '[0.3,{"x":3.33333333e-13}]',
    )
    cloud = PointCloud2(data=b"x" * 5_000, fields=[PointField(name=str(number)) for number in range(9)])
    shown = json.loads(shown_value(cloud, 2_000))
    assert shown["data"] == "<5000 bytes>"
    assert (shown["header"], [field if isinstance(field, str) else field["name"] for field in shown["fields"]]) == (
        {"seq": 0, "stamp": {"sec": 0, "nsec": 0}, "frame_id": ""},
        ["0", "1", "2", "... 9 in all"],
    )


def test_numbers_for_pictures() -> None:
    numbers = list(numbers_of(stamped(x=4.0, sec=7)))
    assert numbers[:4] == [
        ("header.seq", 0.0), ("header.stamp.sec", 7.0), ("header.stamp.nsec", 0.0), ("pose.position.x", 4.0)
    ]  # fmt: skip
    assert [name for name, _ in numbers[6:]] == [f"pose.orientation.{axis}" for axis in "xyzw"]
    assert list(numbers_of(Bool(data=True))) == []
    assert "poses" not in dict(numbers_of(PathMessage(poses=[stamped()])))
