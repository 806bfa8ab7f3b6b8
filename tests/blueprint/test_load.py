"""Blueprints from files: their form, their includes, and errors with lines."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from dimos_streams.blueprint.load import load, resolve
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.documents.document import parse_document
from dimos_streams.documents.problem import BlueprintError
from dimos_streams.errors import UserError
from dimos_streams.robot.simulation.scene_file import load_scene
from tests.blueprint.conftest import Write

FROM_PYTHON = Blueprint(name="from-python", description="written in Python")
A_FILE = Path("somewhere.yaml")
A_NUMBER = 7

BASE = """\
    name: base
    description: For tests
    modules:
      camera:
        type: tests.blueprint.toy_modules:Camera
        process: eyes
        config:
          rate_hz: 20
          lens: {zoom: 2.0}
      walk:
        type: tests.blueprint.toy_modules:Walk
        remap: {cmd_vel: skill_vel, scan: /scan, color_image: null}
    external: [clock#std_msgs.Time, /map#nav_msgs.OccupancyGrid]
"""


def lines(error: pytest.ExceptionInfo[BlueprintError]) -> list[str]:
    return str(error.value).split("\n")


def test_a_file_is_read_with_its_places(write: Write) -> None:
    found = resolve(write("base.yaml", BASE))
    camera, walk = found.modules["camera"], found.modules["walk"]
    assert (found.name, found.description, list(found.modules)) == ("base", "For tests", ["camera", "walk"])
    assert camera.config == {"rate_hz": 20, "lens": {"zoom": 2.0}}
    assert camera.where() == "base.yaml:4"
    assert camera.where("config", "rate_hz") == "base.yaml:8"
    assert camera.where("config", "lens", "zoom") == "base.yaml:9"
    assert camera.where("config", "nowhere") == "base.yaml:7"
    assert camera.where("restart") == "base.yaml:4"
    assert [walk.topic(name) for name in ("cmd_vel", "scan", "color_image", "odom")] == [
        "/skill_vel",
        "/scan",
        None,
        "/odom",
    ]


def test_an_empty_file_is_an_empty_blueprint(write: Write) -> None:
    assert resolve(write("nothing.yaml", "# nothing yet\n")) == Blueprint(name="nothing")


def test_keys_without_a_value_count_as_left_out(write: Write) -> None:
    text = "include:\nmodules:\n  camera:\n    type: tests.blueprint.toy_modules:Camera\n    config:\n    process:\n"
    assert resolve(write("x.yaml", text)).modules["camera"].config == {}


def test_yaml_is_1_2(write: Write) -> None:
    text = "modules: {m: {type: 'a:B', config: {on: 12:30:45, off: no, day: 2026-11-21, octal: 010}}}"
    config = resolve(write("x.yaml", text)).modules["m"].config
    assert config == {"on": "12:30:45", "off": "no", "day": "2026-11-21", "octal": 10}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "modules:\n  follow:\n    type: a:B\n    confg: {}\n",
            "x.yaml:4: unknown key 'confg' in module 'follow'; did you mean 'config'?",
        ),
        ("modles:\n", "x.yaml:1: unknown key 'modles' in the blueprint; did you mean 'modules'?"),
        (
            "modules:\n  a:\n    type: m:C\n    remp:\n",
            "x.yaml:4: unknown key 'remp' in module 'a'; did you mean 'remap'?",
        ),
        ("moduls: {}\n", "x.yaml:1: unknown key 'moduls' in the blueprint; did you mean 'modules'?"),
        (
            "include:\n  - blueprint: base-robot\n    namspace: a\n",
            "x.yaml:3: unknown key 'namspace' in include number 1; did you mean 'namespace'?",
        ),
        ("modules:\n  follow: {process: a}\n", "x.yaml:2: module 'follow' needs the key 'type'"),
        (
            "modules:\n  follow:\n    type: a:B\n    restart: sometimes\n",
            "x.yaml:4: modules.follow.restart: it must be 'never', 'on-failure' or 'always' (given: 'sometimes')",
        ),
        ("modules:\n  a: {type: 'a:B'}\n  a: {}\n", "x.yaml:3: key 'a' is there twice, also at line 2"),
        ("modules:\n  - a\n", "x.yaml:1: modules: it must be an object, names with their values (given: ['a'])"),
        ("modules: {a: [}\n", "x.yaml:1: not valid YAML: expected the node content, but found '}'"),
        ("a:\n    b: 1\n  c: 2\n", "x.yaml:3: not valid YAML: this line is indented otherwise than its neighbours"),
        ("a:\n  b: 1\n - c\n", "x.yaml:3: not valid YAML: this line is indented otherwise than its neighbours"),
        (
            "a:\n  b: 1\n   c: 2\n",
            "x.yaml:3: not valid YAML: this line is indented otherwise than its neighbours, or a text with a"
            " colon lacks quotes",
        ),
        ("a:\n\tb: 1\n", "x.yaml:2: not valid YAML: a line is indented with a tab, where spaces are meant"),
        ("name: !secret x\n", "x.yaml:1: not valid YAML: could not determine a constructor for the tag '!secret'"),
        (
            "a: &x [*x]\n",
            "x.yaml:1: values are nested deeper than 100, or an alias is in what it stands for",
        ),
        ("? [a]\n: 1\n", "x.yaml:1: a key must be text"),
        (
            "modules:\n\n  My-Robot: {type: 'a:B'}\n",
            "x.yaml:3: 'My-Robot' can't be a name: use a-z, 0-9 and single underscores, beginning with a letter",
        ),
        (
            "modules:\n  a:\n    type: a:B\n    process: two words\n",
            "x.yaml:4: 'two words' can't be a name: use a-z, 0-9 and single underscores, beginning with a letter",
        ),
        ("include:\n  - missing.yaml\n", "x.yaml:2: there is no blueprint file 'missing.yaml'"),
        (
            "include: [{blueprint: base.yaml,\n  remap: {walc.cmd_vel: x}}]\n",
            "x.yaml:2: blueprint 'base' has no module 'walc'; did you mean 'walk'?",
        ),
        (
            "include: [{blueprint: base.yaml,\n  set: {distance: x}}]\n",
            "x.yaml:2: 'distance' must name a module and something of it, as in 'follow.distance_m'",
        ),
        (
            "include: [{blueprint: base.yaml,\n  namespace: r/}]\n",
            "x.yaml:2: '' can't be a name: use a-z, 0-9 and single underscores, beginning with a letter",
        ),
        (
            "include: [base.yaml]\nmodules:\n  walk: {type: 'a:B'}\n",
            "x.yaml:3: module 'walk' is there twice (also at base.yaml:10); "
            "give one of them another name or namespace, or, if it comes from an include, change its settings there: "
            "`set: {walk.SETTING: VALUE}`",
        ),
        ("include: [x.yaml]\n", "x.yaml:1: blueprints include each other in a circle: x.yaml -> x.yaml"),
    ],
)
def test_errors_of_form_are_one_line_with_a_place(write: Write, text: str, expected: str) -> None:
    write("base.yaml", BASE)
    with pytest.raises(BlueprintError) as error:
        resolve(write("x.yaml", text))
    assert lines(error) == [expected]


def test_all_errors_of_a_file_come_together(write: Write) -> None:
    text = "nam: x\nmodules:\n  a: {typ: 'a:B'}\n  b: {type: 'a:B', restart: no}\n"
    with pytest.raises(BlueprintError) as error:
        resolve(write("x.yaml", text))
    assert sorted(line.partition(" ")[0] for line in lines(error)) == [
        "x.yaml:1:",
        "x.yaml:3:",
        "x.yaml:3:",
        "x.yaml:4:",
    ]


def test_errors_in_an_included_file_keep_their_place(write: Write) -> None:
    write("sub/inner.yaml", "modules:\n  a: {typ: 'a:B', type: 'a:B'}\n")
    with pytest.raises(BlueprintError) as error:
        resolve(write("x.yaml", "include: [sub/inner.yaml]\n"))
    assert lines(error) == ["sub/inner.yaml:2: unknown key 'typ' in module 'a'; did you mean 'type'?"]


def test_a_circle_through_several_files_is_named(write: Write) -> None:
    write("a.yaml", "include: [sub/b.yaml]\n")
    write("sub/b.yaml", "include:\n  - ../a.yaml\n")
    with pytest.raises(BlueprintError) as error:
        resolve("a.yaml")
    circle = "a.yaml -> sub/b.yaml -> a.yaml"
    assert lines(error) == [f"sub/b.yaml:2: blueprints include each other in a circle: {circle}"]


def test_an_include_is_set_remapped_and_namespaced(write: Write) -> None:
    write("sub/base.yaml", BASE)
    found = resolve(
        write(
            "two.yaml",
            """\
            include:
              - blueprint: sub/base.yaml
                namespace: robot1
                remap: {walk.cmd_vel: base_vel, camera.color_image: /shared_image}
                set:
                  camera.lens.zoom: 3
              - {blueprint: sub/base.yaml, namespace: robot2}
            """,
        )
    )
    camera, walk = found.modules["robot1/camera"], found.modules["robot1/walk"]
    assert list(found.modules) == ["robot1/camera", "robot1/walk", "robot2/camera", "robot2/walk"]
    assert camera.config == {"rate_hz": 20, "lens": {"zoom": 3}}
    assert camera.where("config", "lens", "zoom") == "two.yaml:6"
    assert camera.where("config", "rate_hz") == "sub/base.yaml:8"
    assert (camera.topic("color_image"), walk.topic("cmd_vel")) == ("/shared_image", "/robot1/base_vel")
    assert walk.topic("scan") == "/scan"
    assert walk.where("remap", "cmd_vel") == "two.yaml:4"
    assert (camera.process, found.modules["robot2/camera"].process) == ("robot1/eyes", "robot2/eyes")
    assert found.external == (
        "robot1/clock#std_msgs.Time",
        "/map#nav_msgs.OccupancyGrid",
        "robot2/clock#std_msgs.Time",
    )
    assert found.sources["robot1/clock#std_msgs.Time"] == "sub/base.yaml:13"


def test_a_module_may_have_a_namespace_of_its_own(write: Write) -> None:
    text = "modules: {camera: {type: 'a:B', namespace: robot1/head}}\n"
    spec = resolve(write("x.yaml", text)).modules["robot1/head/camera"]
    assert (spec.namespace, spec.prefix) == ("robot1/head", "robot1/head/")


def test_python_references() -> None:
    assert resolve("tests.blueprint.test_load:FROM_PYTHON") is FROM_PYTHON


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("tests.blueprint.test_load:FROM_PYTON", "did you mean 'FROM_PYTHON'?"),
        (
            "tests.blueprint.test_laod:X",
            "no Python module 'tests.blueprint.test_laod'; did you mean 'tests.blueprint.test_load'?",
        ),
        ("tests.blueprint.test_load:A_NUMBER", "is neither a Blueprint nor the Path of a file but int"),
        ("tests.blueprint.test_load:A_FILE", "there is no blueprint file 'somewhere.yaml'"),
        (
            "tests.blueprint.toy_modules:Camera",
            "is a Module class and no blueprint, which would hold it: `modules: {camera: {type:"
            " 'tests.blueprint.toy_modules:Camera'}}`",
        ),
        ("a b:c", "'a b:c' is not of the form 'package.module:Name'"),
        ("no/such/file.yaml", "there is no blueprint file 'no/such/file.yaml'"),
        (
            "./porter/greet.py",
            "'./porter/greet.py' is Python code, whose blueprints are given as 'porter.greet:ATTRIBUTE'",
        ),
        ("greet.py", "blueprints are given as 'greet:ATTRIBUTE'"),
        (
            "../my-robot/greet.py",
            "blueprints are given as 'greet:ATTRIBUTE', behind `PYTHONPATH=../my-robot dimos-streams …`",
        ),
        ("../my-robot/my-greet.py", "blueprints are given as 'package.module:ATTRIBUTE'"),
        ("folow-person", "no blueprint is called 'folow-person'; did you mean 'follow-person'?"),
    ],
)
def test_references_that_lead_nowhere(reference: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(UserError, match=r"^.*$") as error:
        resolve(reference)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_directory_and_odd_bytes_are_no_tracebacks(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_bytes(b"name: \xff\n")
    for path, why in ((tmp_path, "can't be read"), (tmp_path / "odd.yaml", "is not UTF-8")):
        with pytest.raises(UserError, match=why):
            load(path)


def test_links_that_lead_to_no_file_are_named_as_they_were_typed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("b.yaml")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    for name, how in (("a.yaml", "in a circle"), ("gone.yaml", f"to '{tmp_path}/nowhere', which is not there")):
        leads = re.escape(f"file '{tmp_path / name}' is a link that leads {how}")
        with pytest.raises(UserError, match=f"^blueprint {leads}$"):
            resolve(str(tmp_path / name))
        with pytest.raises(UserError, match=f"^scene {leads}$"):
            load_scene(str(tmp_path / name))
    with pytest.raises(UserError, match="can't be read: Too many levels of symbolic links"):
        resolve(str(tmp_path / "a.yaml" / "x.yaml"))
    with pytest.raises(UserError, match=r"can't be read: (stat: )?embedded null"):
        resolve(str(tmp_path / "a\0.yaml"))


def test_a_pipe_and_a_device_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "b.yaml").write_text("include: [/dev/zero]\n")
    for path in (tmp_path / "pipe.yaml", tmp_path / "b.yaml"):
        with pytest.raises(UserError, match="can't be read: it is a device or a pipe, which may have no end"):
            load(path)


def test_half_a_character_in_a_file_is_repaired() -> None:
    document = parse_document('"a\\ud83d": ["\\ud83d\\ude00", "\\ude00"]', "test.yaml")
    assert document.data == {"a\ufffd": ["😀", "\ufffd"]}


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("shelves.yml", "there is no blueprint file 'shelves.yml'; did you mean 'shelves.yaml'?"),
        ("./shelvs.yaml", "there is no blueprint file 'shelvs.yaml'; did you mean 'shelves.yaml'?"),
        ("shelves", "no blueprint is called 'shelves'; did you mean 'shelves.yaml'? (stock: "),
    ],
)
def test_a_file_that_is_nearly_called_so_is_suggested(
    reference: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shelves.yaml").write_text("name: shelves\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        resolve(reference)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("digits", ["0x" + "f" * 3900, "0b" + "1" * 15000, "9" * 4301])
def test_a_number_that_nobody_could_show_is_refused_in_whatever_base_it_is_written(digits: str) -> None:
    with pytest.raises(BlueprintError, match=r"can't be read: Exceeds the limit \(4300 digits\)"):
        parse_document(digits, "value")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("KEY=s3cret\nPW=s3cret\n", "other:1: it must be an object, names with their values, and is a text"),
        ("- s3cret\n", "other:1: it must be an object, names with their values, and is a list"),
        ("root:$6$s3cret:190:0:::\n", "other:1: a key that is no name in the blueprint"),
    ],
)
def test_nothing_is_shown_of_a_file_that_is_no_blueprint(write: Write, text: str, said: str) -> None:
    write("a.yaml", "name: a\ninclude: [./other]\n")
    write("other", text)
    with pytest.raises(BlueprintError) as error:
        resolve("a.yaml")
    assert lines(error) == [said]
