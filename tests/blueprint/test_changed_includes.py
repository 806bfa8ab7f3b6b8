"""Modules of an include are removed, replaced, given another class, and their lists are set item by item."""

from __future__ import annotations

import pytest

from dimos_streams.blueprint import blueprint, include, module
from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.settings import apply_settings
from dimos_streams.documents.problem import BlueprintError
from tests.blueprint import toy_modules
from tests.blueprint.checked import check_reference
from tests.blueprint.conftest import Write

BASE = """\
    modules:
      camera: {type: "tests.blueprint.toy_modules:Camera", process: eyes, config: {rate_hz: 20}}
      walk:
        type: tests.blueprint.toy_modules:Walk
        process: legs
        remap: {scan: null}
      wheels: {type: "tests.blueprint.toy_modules:Wheels"}
      route:
        type: tests.blueprint.toy_modules:Route
        config:
          points: [[0, 0], [1, 0], [1, 1]]
          stops: [{name: door}]
"""


@pytest.fixture
def base(write: Write) -> str:
    return write("base.yaml", BASE)


def problem_lines(reference: str) -> list[str]:
    return [str(problem) for problem in check_reference(reference)[1]]


@pytest.mark.feature("K3")
@pytest.mark.usefixtures("base")
def test_modules_go_are_replaced_and_get_another_class(write: Write) -> None:
    text = """\
        include:
          - blueprint: base.yaml
            namespace: red
            without: [wheels]
            replace:
              camera:
                type: tests.blueprint.toy_modules:Camera
                config: {encoding: rgb8}
            types: {walk: "tests.blueprint.toy_modules:Stroll"}
            set: {camera.rate_hz: 5, walk.pauses: 3}
    """
    found = resolve(write("x.yaml", text))
    assert list(found.modules) == ["red/camera", "red/walk", "red/route"]
    camera, walk = found.modules["red/camera"], found.modules["red/walk"]
    assert (camera.config, camera.process) == ({"encoding": "rgb8", "rate_hz": 5}, None)
    assert (walk.type, walk.process) == ("tests.blueprint.toy_modules:Stroll", "red/legs")
    assert (walk.remap, walk.config) == ({"scan": None}, {"pauses": 3})
    assert [camera.where("config", "encoding"), walk.where("type")] == ["x.yaml:8", "x.yaml:9"]
    assert check(found) == []
    inside_python = blueprint(
        "x",
        include(
            "base.yaml",
            namespace="red",
            without=["wheels"],
            replace={"camera": module(toy_modules.Camera, encoding="rgb8")},
            types={"walk": toy_modules.Stroll},
            set={"camera.rate_hz": 5, "walk.pauses": 3},
        ),
    )
    assert inside_python == found


@pytest.mark.feature("K3")
def test_a_module_of_an_include_in_a_namespace_is_replaced_in_its_place(write: Write, base: str) -> None:
    write(
        "two.yaml",
        f"include:\n  - {{blueprint: {base}, namespace: red}}\n  - {{blueprint: {base}, namespace: blue}}\n",
    )
    text = """\
        include:
          - blueprint: two.yaml
            without: [blue/route]
            replace: {red/walk: {type: "tests.blueprint.toy_modules:Stroll", process: p}}
    """
    found = resolve(write("x.yaml", text))
    assert "blue/route" not in found.modules
    assert list(found.modules)[:3] == ["red/camera", "red/walk", "red/wheels"]
    assert found.modules["red/walk"].process == "red/p"
    assert found.modules["red/walk"].topic("cmd_vel") == "/red/cmd_vel"


@pytest.mark.feature("K3")
def test_modules_of_an_include_get_another_process_below_their_namespace(write: Write, base: str) -> None:
    write("red.yaml", f"include: [{{blueprint: {base}, namespace: red}}]\n")
    text = """\
        include:
          - blueprint: red.yaml
            processes: {red/camera: legs, red/walk: null, red/route: maps}
            namespace: fleet
    """
    found = resolve(write("x.yaml", text))
    processes = [spec.process for spec in found.modules.values()]
    assert processes == ["fleet/red/legs", None, None, "fleet/red/maps"]
    assert found.modules["fleet/red/camera"].where("process") == "x.yaml:3"
    labels = {"red/camera": "legs", "red/walk": None, "red/route": "maps"}
    assert blueprint("x", include("red.yaml", processes=labels, namespace="fleet")) == found


@pytest.mark.feature("K3")
@pytest.mark.usefixtures("base")
def test_lists_are_set_item_by_item(write: Write) -> None:
    text = """\
        include:
          - blueprint: base.yaml
            set:
              route.points.1: [2, 0]
              route.points.2.0: 5
              route.points.3: [9, 9]
              route.stops.0.wait_s: 4
              route.stops.1.name: gate
    """
    found = resolve(write("x.yaml", text))
    assert found.modules["route"].config == {
        "points": [[0, 0], [2, 0], [5, 1], [9, 9]],
        "stops": [{"name": "door", "wait_s": 4}, {"name": "gate"}],
    }
    assert found.modules["route"].where("config", "points", "1") == "x.yaml:4"
    assert check(found) == []
    on_top = apply_settings(found, {}, ["route.points.0.1=0.5"])
    assert on_top.modules["route"].config["points"][0] == [0, 0.5]


@pytest.mark.feature("K3")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("without: [camra]", "x.yaml:3: blueprint 'base' has no module 'camra'; did you mean 'camera'?"),
        ("without: [nose]", "x.yaml:3: blueprint 'base' has no module 'nose' (modules: camera, walk, wheels, route)"),
        ("replace: {nose: {type: 'a:B'}}", "x.yaml:3: blueprint 'base' has no module 'nose' (modules: "),
        ("replace: {walk: {typ: 'a:B'}}", "x.yaml:3: replacement of 'walk' needs the key 'type'"),
        ("types: {wlk: 'a:B'}", "x.yaml:3: blueprint 'base' has no module 'wlk'; did you mean 'walk'?"),
        ("processes: {wlk: p}", "x.yaml:3: blueprint 'base' has no module 'wlk'; did you mean 'walk'?"),
        ("processes: {walk: My-Legs}", "x.yaml:3: 'My-Legs' can't be a name: use a-z, 0-9 and single underscores"),
        ("set: {route.points.4: [1, 1]}", "x.yaml:3: 'points' has no item '4': 0 to 2 are there, 3 adds one"),
        ("set: {route.points.first: [1, 1]}", "x.yaml:3: 'points' has no item 'first': 0 to 2 are there"),
        ("wihtout: [walk]", "x.yaml:3: unknown key 'wihtout' in include number 1; did you mean 'without'?"),
    ],
)
@pytest.mark.usefixtures("base")
def test_what_is_not_there_is_named_with_what_is(write: Write, change: str, expected: str) -> None:
    name = write("x.yaml", f"include:\n  - blueprint: base.yaml\n    {change}\n")
    with pytest.raises(BlueprintError) as error:
        resolve(name)
    assert str(error.value).startswith(expected)


@pytest.mark.feature("K3")
@pytest.mark.usefixtures("base")
def test_check_tells_what_a_changed_include_lacks(write: Write) -> None:
    name = write("x.yaml", "include:\n  - blueprint: base.yaml\n    without: [camera]\n")
    [line] = problem_lines(name)
    assert line.startswith("base.yaml:6: module 'walk' requires its input 'color_image', but nothing publishes")
    name = write(
        "x.yaml", "include:\n  - blueprint: base.yaml\n    types: {walk: 'tests.blueprint.toy_modules:Strol'}\n"
    )
    line, doubt = problem_lines(name)
    assert line.endswith("has no 'Strol'; did you mean 'Stroll'?")
    assert line.startswith("x.yaml:3: module 'walk'")
    assert doubt == "warning: whether anything publishes for wheels.cmd_vel is judged once every module can be used"
    name = write("x.yaml", "include:\n  - blueprint: base.yaml\n    set: {route.stops.0.wait: 1}\n")
    assert problem_lines(name) == ["x.yaml:3: module 'route' has no setting 'stops.0.wait'; did you mean 'wait_s'?"]


@pytest.mark.feature("K3")
def test_an_item_of_a_list_that_only_the_class_has_is_told(write: Write) -> None:
    text = "modules:\n  route:\n    type: tests.blueprint.toy_modules:Route\n"
    base = write("base.yaml", text)
    name = write("x.yaml", f"include:\n  - blueprint: {base}\n    set: {{route.points.0: [1, 1]}}\n")
    assert problem_lines(name) == [
        "x.yaml:3: module 'route': points has no item 0 in the blueprint that could be set: set it whole"
    ]


@pytest.mark.feature("K3")
def test_check_sees_a_remapped_input_that_nobody_publishes(write: Write, base: str) -> None:
    text = f"include:\n  - blueprint: {base}\n    remap: {{walk.scan: lidar}}\n"
    assert problem_lines(write("x.yaml", text)) == [
        "x.yaml:3: module 'walk' has a remapped input 'scan', but nothing publishes "
        "'/lidar#sensor_msgs.LaserScan'; no module has an output of that type"
    ]
    assert problem_lines(write("x.yaml", f"{text}external: ['lidar#sensor_msgs.LaserScan']\n")) == []
