"""The generated classes: true to the wire's facts, up to date, and pleasant to use."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dimos_streams.errors import UserError
from dimos_streams.messages import generate, geometry_msgs
from dimos_streams.messages.base import fields_of
from dimos_streams.messages.codec import type_named
from dimos_streams.messages.geometry_msgs import Point, PoseWithCovariance, Twist, Vector3
from dimos_streams.messages.index import TYPE_NAMES
from dimos_streams.messages.sensor_msgs import Image, LaserScan, PointField
from dimos_streams.messages.std_msgs import Float32

FACTS = json.loads((Path(__file__).parent / "fingerprints.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FACTS)
def test_class_is_wire_compatible(name: str) -> None:
    cls = type_named(name)
    package = name.partition(".")[0]
    fields = []
    for field in fields_of(cls):
        size = "" if field.size is None else f"[{field.size}]"
        fields.append(f"{field.type.removeprefix(package + '.')}{size} {field.name}")
    assert fields == FACTS[name]["fields"]
    assert cls._get_packed_fingerprint().hex() == FACTS[name]["fingerprint"]
    assert cls.msg_name == name
    for constant, value in FACTS[name].get("constants", {}).items():
        assert getattr(cls, constant) == value


def test_every_type_is_either_a_fact_or_our_own() -> None:
    shared = {name for name in TYPE_NAMES if not name.startswith("dimos_streams.")}
    remedy = (
        "dimos has those of all packages but dimos_streams: note its facts in fingerprints.json, or move the type"
    )
    assert shared == FACTS.keys(), remedy


@pytest.mark.slow
@pytest.mark.usefixtures("lcm_library")
def test_generated_files_are_up_to_date() -> None:
    assert generate.main(["--check"]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("lcm_library")
def test_check_names_stale_missing_and_extra_files(tmp_path: Path) -> None:
    expected = generate.generate(generate.DEFINITIONS)
    for path, text in expected.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert generate.differences(expected, tmp_path) == {}

    (tmp_path / "tools").mkdir()
    for somebodys in ("__init__.py", "tool.py"):
        (tmp_path / "tools" / somebodys).write_text('"""Not of messages."""\n', encoding="utf-8")
    stale, missing, extra = Path("std_msgs/Time.py"), Path("std_msgs/Bool.pyi"), Path("std_msgs/Gone.py")
    (tmp_path / stale).write_text("", encoding="utf-8")
    (tmp_path / missing).unlink()
    (tmp_path / extra).write_text("", encoding="utf-8")
    assert generate.differences(expected, tmp_path) == {
        stale: "stale",
        missing: "missing",
        extra: "left over",
    }


def test_what_was_written_is_not_called_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "std_msgs" / "Time.py"
    monkeypatch.setattr(generate, "HERE", tmp_path)
    monkeypatch.setattr(generate, "generate", lambda definitions: {made.relative_to(tmp_path): ""})
    for arguments, code, said in ((["--check"], 1, f"missing: {made}\n"), ([], 0, f"written: {made}\n"), ([], 0, "")):
        assert (generate.main(arguments), capsys.readouterr().err) == (code, said)


@pytest.mark.usefixtures("lcm_library")
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("package p; struct T { int32_t n; double x[n][3]; }", "dimensions"),
        ("package p; struct Other { int32_t n; }", "must define struct T"),
        ("package q; struct T { int32_t n; }", "must define struct T"),
        ("package p; struct T { nonsense", r"p/T\.lcm:1: End of file reached, expected name identifier"),
    ],
)
def test_unsuitable_definitions_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "T.lcm").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=complaint):
        generate.generate(tmp_path)


def test_constructor_takes_fields_by_name() -> None:
    twist = Twist(linear=Vector3(x=0.5))
    assert (twist.linear.x, twist.linear.y, twist.angular) == (0.5, 0.0, Vector3())
    assert PointField(datatype=PointField.FLOAT32).datatype == 7


def test_constructor_makes_no_default_for_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Vector3(x=0.5)
    monkeypatch.delattr(geometry_msgs, "Vector3")
    twist = Twist(linear=given, angular=given)
    assert twist.linear is twist.angular is given
    with pytest.raises(AttributeError):
        Twist(linear=given)


def test_constructor_names_the_nearest_field() -> None:
    with pytest.raises(TypeError, match=r"geometry_msgs\.Twist has no field 'linaer'; did you mean 'linear'\?"):
        Twist(linaer=Vector3())  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"std_msgs\.Float32 has no field 'value' \(fields: data\)"):
        Float32(value=3.0)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Twist().linaer = Vector3()  # type: ignore[attr-defined]


def test_equality_is_by_class_and_content() -> None:
    assert Vector3(x=1.0) != Vector3()
    assert Vector3() != Point()
    assert LaserScan(ranges=[1.0, 2.0]) == LaserScan(ranges=np.array([1.0, 2.0]))
    assert LaserScan(ranges=[1.0, 2.0]) != LaserScan(ranges=(1.0,))
    sized = Image(data=b"ab")
    sized.data_length = 2
    assert sized == Image(data=b"ab")


def test_repr_is_short_and_leaves_out_sizes() -> None:
    assert repr(Vector3(x=1.0)) == "Vector3(x=1.0, y=0.0, z=0.0)"
    assert "covariance=[0.0, 0.0, 0.0, ... 36 in all]" in repr(PoseWithCovariance())
    assert "data=<60000 bytes>" in repr(Image(data=bytes(60_000)))
    assert "data_length" not in repr(Image())


def test_copies_are_independent() -> None:
    twist = Twist(linear=Vector3(x=0.5))
    for other in (copy.deepcopy(twist), pickle.loads(pickle.dumps(twist))):
        assert other == twist
        other.linear.x = 1.0
        assert twist.linear.x == 0.5


def test_definitions_are_no_top_level_package() -> None:
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", "import lcm_types"], cwd=root, capture_output=True, text=True, check=False
    )
    assert "import dimos_streams.lcm_types" in result.stderr
