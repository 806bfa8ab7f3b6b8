"""Message types of one's own package: generated classes, plain classes of lcm-gen, and how names find them."""

from __future__ import annotations

import ast
import importlib
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages import registry
from dimos_streams.messages.codec import decode, encode, type_named
from dimos_streams.messages.generate import differences, generate_own, python_name
from dimos_streams.messages.generation import definitions
from dimos_streams.messages.geometry_msgs import Point, Pose
from dimos_streams.messages.plain_classes import accepted, message_class
from dimos_streams.messages.std_msgs import Header
from tests.messages.own_types import READING, WIND, Package

pytestmark = [pytest.mark.feature("K2"), pytest.mark.usefixtures("lcm_library")]


OTHERS = (
    "; types of other packages are known by an entry point in 'dimos_streams.messages', once they are installed with "
    "it, or by their import path in DIMOS_STREAMS_MESSAGES (DIMOS_STREAMS_MESSAGES=my_package.messages)"
)


def generated(package: Package) -> Any:
    package.define()
    package.generate()
    return importlib.import_module("weather.messages.weather_msgs")


def test_generated_classes_have_the_wire_of_lcm_gen(package: Package) -> None:
    own = generated(package)
    package.lcm_gen()
    plain = importlib.import_module("weather_msgs")
    stock = importlib.import_module("geometry_msgs")
    for name in ("Wind", "Reading"):
        assert getattr(own, name)._get_packed_fingerprint() == getattr(plain, name)._get_packed_fingerprint()

    ours = own.Reading(header=Header(frame_id="map"), pose=Pose(position=Point(x=1.5)), winds=[own.Wind(speed=3.0)])
    theirs = plain.Reading()
    theirs.header.frame_id, theirs.pose.position = "map", stock.Point()
    theirs.pose.position.x, theirs.pose.orientation.w = 1.5, ours.pose.orientation.w
    theirs.winds_length, theirs.winds, theirs.raw = 1, [plain.Wind()], bytes(4)
    theirs.winds[0].speed = 3.0
    assert encode(ours) == theirs.encode()
    assert decode(own.Reading, theirs.encode()) == ours
    assert plain.Reading.decode(encode(ours)).winds[0].speed == 3.0
    assert (own.Wind.STORM, own.Reading.msg_name) == (12, "weather_msgs.Reading")


def test_an_lcm_gen_that_can_not_be_run_is_named_with_the_reason(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "lcm-gen"
    program.touch()
    monkeypatch.setattr(definitions, "lcm_gen", lambda: program)
    package.define()
    with pytest.raises(UserError, match=f"lcm-gen can't be run: .*Permission denied: '{program}'"):
        package.generate()


def test_generated_classes_are_checked_as_ours_are(package: Package) -> None:
    own = generated(package)
    with pytest.raises(MessageError, match=r"winds\[0\]\.speed: 'fast' is no double"):
        encode(own.Reading(winds=[own.Wind(speed="fast")]))
    with pytest.raises(MessageError, match="raw: 3 entries, 4 expected"):
        encode(own.Reading(raw=b"abc"))
    with pytest.raises(MessageError, match="too early"):
        decode(own.Reading, encode(own.Reading())[:-1])


def test_check_tells_what_is_not_fresh(package: Package) -> None:
    package.define()
    folder = package.messages
    assert set(differences(generate_own(folder), folder, shared=True).values()) == {"missing"}
    package.generate()
    assert differences(generate_own(folder), folder, shared=True) == {}

    package.define({"weather_msgs/Wind.lcm": WIND.replace("double speed", "float speed")})
    (folder / "weather_msgs" / "Gone.lcm").write_text("package weather_msgs; struct Gone { int8_t a; }")
    package.generate()
    (folder / "weather_msgs" / "Gone.lcm").unlink()
    package.define({"weather_msgs/Wind.lcm": WIND})
    assert differences(generate_own(folder), folder, shared=True) == {
        Path("index.py"): "stale",
        Path("weather_msgs/Gone.py"): "left over",
        Path("weather_msgs/Gone.pyi"): "left over",
        Path("weather_msgs/Wind.py"): "stale",
        Path("weather_msgs/__init__.py"): "stale",
    }


def test_nothing_of_somebodys_is_overwritten_or_deleted(package: Package) -> None:
    package.define()
    mine = package.messages / "__init__.py"
    mine.write_text('"""Mine."""\n')
    helper = package.messages / "weather_msgs" / "helper.py"
    helper.write_text("X = 1\n")
    package.generate()
    assert (mine.read_text(), helper.read_text()) == ('"""Mine."""\n', "X = 1\n")

    taken = package.messages / "weather_msgs" / "Wind.py"
    taken.write_text("class Wind: ...\n")
    with pytest.raises(UserError, match=r"Wind\.py' is not a generated file, but one belongs there: move it away"):
        package.generate()


def test_nothing_is_written_through_a_link(package: Package, tmp_path: Path) -> None:
    """Definitions may be a stranger's, and their folder may have links to where this user's programs are begun."""
    package.define()
    outside = tmp_path / "outside"
    (package.messages / "weather_msgs" / "Wind.py").symlink_to(outside)
    with pytest.raises(UserError, match=r"Wind\.py' is not a generated file, but one belongs there: move it away"):
        package.generate()
    assert not outside.exists()


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("p/T.lcm", "package p;\nstruct T {\n  int32_t n\n  double x;\n}", r"p/T\.lcm:4: expected token ;"),
        ("p/T.lcm", "package p;\nstruct T {\n  double x[m];\n}", r"p/T\.lcm:3: Unknown variable array index 'm'"),
        ("p/T.lcm", "package p;\nstruct T {\n  uint32_t n;\n}", r":3: .*'uint32_t', of the field 'n'.* int32_t"),
        ("p/T.lcm", "package p;\n// Pose x\nstruct T {\n\n  Pose x;\n}", r":5: .*did you mean 'geometry_msgs\.Pose'"),
        ("p/T.lcm", "package p;\nstruct T {\n  std_msgs.Heder x;\n}", r":3: .*did you mean 'std_msgs\.Header'"),
        ("p/T.lcm", "package p;\nstruct T {\n  q.Foo x;\n}", r":3: there is no type 'q\.Foo'.* string, and message"),
        ("p/T.lcm", "package p;\nstruct T {\n  double a, class;\n}", r":3: no field or constant .* 'class'"),
        (
            "p/T.lcm",
            "package p;\nstruct T {\n  const double A = 1, B = -inf;\n}",
            r":3: .* 'B' .*: -inf is no number",
        ),
        ("p/T.lcm", "package p;\nstruct T {\n  int8_t encode;\n}", r":3: no field or constant .* 'encode'"),
        ("p/T.lcm", "package p;\nstruct T {\n  int8_t a;\n  T b[2];\n}", r"p\.T contains itself"),
        ("p/T.lcm", "package p;\nenum T { A = 1 }", r":2: it must define a struct; .*const int8_t"),
        ("p/T.lcm", "package p;\nstruct T { int8_t a; }\nstruct U { int8_t a; }", "nothing else; it has T, U"),
        ("p/T.lcm", "// package p;\nstruct T { int8_t a; }", r":2: .* struct T of package p .* has T of no package$"),
        ("p/T.lcm", "// ours\npackage q;\n\nstruct T { int8_t a; }", r":2: .* of package p .* has T of package q$"),
        ("p/T.lcm", "package p;\nstruct T {\n int8_t n;\n double x[n][2];\n}", r":4: x has 2 dimensions"),
        ("p/T.lcm", 'package p;\n/*\n"""\nprint(1)\n"""\n*/\nstruct T { int8_t a; }', r":3: .* three quotes"),
        ("p/T.lcm", "package p;\nstruct T {\n  // \\u002a/ int x;\n  int8_t a;\n}", r":3: .* a backslash"),
        ("p/T.lcm", "package p;\nstruct T {\n  // */ int x; /*\n  int8_t a;\n}", r":3: .* the end of a comment in"),
        (
            "std_msgs/Bool.lcm",
            "package std_msgs;\nstruct Bool { int8_t a; }",
            "std_msgs.Bool is a message type of dimos",
        ),
        ("T.lcm", "package p;\nstruct T { int8_t a; }", r"must be in a folder that is named as its package"),
        ("my-p/T.lcm", "package p;\nstruct T { int8_t a; }", r"'my-p' can't be the name of a package"),
    ],
)
def test_what_is_wrong_with_a_definition_has_its_line(name: str, text: str, complaint: str, package: Package) -> None:
    package.define({name: text})
    with pytest.raises(UserError, match=complaint):
        package.generate()


def test_folders_without_definitions_say_what_belongs_there(package: Package, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        generate_own(tmp_path / "missing")
    with pytest.raises(UserError, match=r"has no definitions: they are files PACKAGE/Name\.lcm"):
        generate_own(tmp_path)


def test_the_name_in_python_begins_at_the_topmost_package(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "weather" / "messages"
    folder.mkdir(parents=True)
    assert python_name(folder) == "messages"
    (folder.parent / "__init__.py").touch()
    assert python_name(folder) == "weather.messages"
    with pytest.raises(UserError, match=r"'my-types' can't be imported: .*--package"):
        python_name(tmp_path / "my-types")


def test_a_name_is_found_through_the_environment(package: Package) -> None:
    own = generated(package)
    with pytest.raises(MessageError, match="no such message type"):
        type_named("weather_msgs.Reading")
    package.list_in_environment("weather.messages")
    assert type_named("weather_msgs.Reading") is own.Reading
    with pytest.raises(MessageError, match=r"did you mean 'weather_msgs\.Reading'"):
        type_named("weather_msgs.Readin")
    package.list_in_environment("weather.messages, weather, os")
    assert type_named("weather_msgs.Wind") is own.Wind
    with pytest.raises(MessageError, match=r"'weather' has no message classes.*'os' has no message classes"):
        type_named("weather_msgs.Winds")


def test_a_name_is_found_through_an_entry_point(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    own = generated(package)

    def entry_points(group: str) -> EntryPoints:
        assert group == "dimos_streams.messages"
        entries = (("weather", "weather.messages"), ("broken", "weather.massages"))
        return EntryPoints(EntryPoint(name, value, group) for name, value in entries)

    monkeypatch.setattr(registry, "entry_points", entry_points)
    registry._installed.cache_clear()
    assert type_named("weather_msgs.Reading") is own.Reading
    with pytest.raises(MessageError, match=r"entry point 'broken' .* did you mean 'weather.messages'"):
        type_named("weather_msgs.Snow")


def test_a_type_of_another_package_can_be_inside_ones_own(package: Package) -> None:
    generated(package)
    package.list_in_environment("weather.messages")
    farm = package.root / "farm"
    (farm / "farm_msgs").mkdir(parents=True)
    (farm / "farm_msgs" / "Field.lcm").write_text("package farm_msgs;\nstruct Field { weather_msgs.Wind wind; }")
    text = generate_own(farm)[Path("farm_msgs/Field.py")]
    assert "import weather.messages.weather_msgs.Wind" in text
    assert "from weather.messages.weather_msgs.Wind import Wind" in generate_own(farm)[Path("farm_msgs/Field.pyi")]


def test_a_comment_that_does_not_end_is_looked_through_once() -> None:
    text = "/* " * 1000
    assert [found.span() for found in definitions._COMMENT.finditer(text)] == [(0, len(text))]


@pytest.mark.parametrize("at", ["/dev/zero", "nowhere"])
def test_a_definition_that_is_no_file_is_named(package: Package, at: str) -> None:
    package.define()
    (package.messages / "weather_msgs" / "Gust.lcm").symlink_to(at)
    with pytest.raises(UserError, match=r"Gust\.lcm can't be read: (it is a device|No such file)"):
        package.generate()


def test_a_comment_may_end_with_a_quote(package: Package) -> None:
    package.define({"weather_msgs/Gust.lcm": 'package weather_msgs;\n// Called "gust"\nstruct Gust { double a; }'})
    made = generate_own(package.messages)
    for suffix in (".py", ".pyi"):
        nodes = ast.parse(made[Path(f"weather_msgs/Gust{suffix}")]).body
        [described] = (ast.get_docstring(node) for node in nodes if isinstance(node, ast.ClassDef))
        assert (described or "").strip() == 'Called "gust"'


def test_classes_of_one_name_stay_apart_in_a_stub(package: Package) -> None:
    text = "package weather_msgs;\nstruct Time { std_msgs.Time a; builtin_interfaces.Time b; }"
    package.define({"weather_msgs/Time.lcm": text})
    stub = generate_own(package.messages)[Path("weather_msgs/Time.pyi")]
    assert "import Time as std_msgs_Time" in stub
    assert "    b: builtin_interfaces_Time\n" in stub


def test_a_definition_that_is_no_utf_8_is_named_with_its_line(package: Package) -> None:
    package.define({"p/T.lcm": "package p;\n// Grad\nstruct T { int8_t a; }"})
    file = package.messages / "p" / "T.lcm"
    file.write_bytes(file.read_bytes().replace(b"Grad", b"\xb0"))
    with pytest.raises(UserError, match=r"T\.lcm:2: it is not UTF-8"):
        package.generate()


@pytest.mark.parametrize("prefix", [(), ("--package-prefix", "weather")])
def test_plain_classes_of_lcm_gen_are_taken_in(prefix: tuple[str, ...], package: Package) -> None:
    package.define()
    package.lcm_gen(*prefix)
    plain: Any = importlib.import_module(".".join((*prefix[1:], "weather_msgs")))
    cls = message_class(plain.Reading)
    assert (cls.msg_name, message_class(plain.Reading)) == ("weather_msgs.Reading", cls)

    reading = plain.Reading()
    reading.station, reading.raw, reading.winds = "roof", b"abcd", [plain.Wind()]
    taken = accepted(reading, cls)
    assert taken is not None
    data = encode(taken)
    assert reading.winds_length == 0  # encode fills in sizes; what is somebody's stays as it is
    reading.winds_length = 1
    assert data == reading.encode()

    back: Any = decode(cls, data)
    assert isinstance(back, plain.Reading)
    assert isinstance(back.winds[0], plain.Wind)
    assert back == taken
    assert "station='roof'" in repr(back)
    with pytest.raises(MessageError, match="too early"):
        decode(cls, data[:-3])
    reading.winds[0].speed = "fast"
    with pytest.raises(MessageError, match=r"winds\[0\]\.speed: 'fast' is no double"):
        encode(accepted(reading, cls) or cls())
    assert accepted(Header(), cls) is None
    package.list_in_environment(plain.__name__)
    assert type_named("weather_msgs.Reading") is cls


@pytest.mark.parametrize(
    ("files", "name", "complaint"),
    [
        ({"p/Grid.lcm": "package p;\nstruct Grid { double x[2][3]; }"}, "p.Grid", r"p\.Grid\.x has 2 dimensions"),
        ({"p/Tree.lcm": "package p;\nstruct Tree { int32_t n; Tree t[n]; }"}, "p.Tree", r"p\.Tree contains itself"),
        ({"p/Bare.lcm": "struct Bare { int8_t n; }"}, "Bare", "'Bare' has no LCM package: .*'package NAME;'"),
    ],
)
def test_plain_classes_that_can_not_be_messages_say_why(
    files: dict[str, str], name: str, complaint: str, package: Package
) -> None:
    package.define(files)
    package.lcm_gen()
    found: Any = importlib.import_module(name)
    with pytest.raises(TypeError, match=complaint):
        message_class(getattr(found, name.rpartition(".")[2]))


def test_two_packages_that_define_one_name_differently_are_told(package: Package) -> None:
    generated(package)
    other = package.root / "weather" / "others"
    (other / "weather_msgs").mkdir(parents=True)
    (other / "weather_msgs" / "Wind.lcm").write_text("package weather_msgs;\nstruct Wind { float knots; }")
    for path, text in generate_own(other).items():
        (other / path).write_text(text)
    package.list_in_environment("weather.messages, weather.others")
    [problem] = registry.installed().problems
    assert (
        "weather_msgs.Wind of 'weather.others' differs from that of 'weather.messages.weather_msgs.Wind'" in problem
    )
    assert READING.count("Wind") == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sensor_msgs.LaserScann", "; did you mean 'sensor_msgs.LaserScan'?"),
        ("sensor_msg.LaserScan", "; did you mean 'sensor_msgs.LaserScan'?"),
        ("Twist", "; did you mean 'geometry_msgs.Twist'?"),
        *((name, OTHERS) for name in ("warehouse_msgs.RackScan", "acme_msgs.Twist", "sensor_msgs.Xyzzy")),
    ],
)
def test_a_type_of_another_package_is_not_suggested_but_how_it_becomes_known(name: str, hint: str) -> None:
    assert registry.hint(name) == hint
