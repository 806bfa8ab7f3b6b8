"""Blueprints in Python, and the laws of remapping and namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.blueprint import Blueprint, BlueprintError, ModuleSpec, blueprint, include, module
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.wiring import wire
from dimos_streams.errors import UserError
from tests.blueprint import toy_modules
from tests.blueprint.conftest import Write

CAMERA = module(toy_modules.Camera, process="eyes", lens=toy_modules.LensConfig(zoom=2.0), rate_hz=20)
ROBOT = blueprint("robot", CAMERA, module(toy_modules.Walk, label="you"), external=("scan#sensor_msgs.LaserScan",))

YAML = """\
    description: Two robots
    include:
      - blueprint: robot.yaml
        namespace: robot1
        remap: {walk.cmd_vel: base_vel}
        set: {walk.distance_m: 1.2, camera.lens.zoom: 3.0}
      - {blueprint: robot.yaml, namespace: robot2}
    modules:
      wheels:
        type: tests.blueprint.toy_modules:Wheels
        restart: always
        remap: {cmd_vel: /robot1/base_vel}
    external: [/map#nav_msgs.OccupancyGrid]
"""
ROBOT_YAML = """\
    modules:
      camera:
        type: tests.blueprint.toy_modules:Camera
        process: eyes
        config: {rate_hz: 20, lens: {zoom: 2.0, filter: ""}}
      walk:
        type: tests.blueprint.toy_modules:Walk
        config: {label: you}
    external: [scan#sensor_msgs.LaserScan]
"""


def test_yaml_and_python_give_the_same_blueprint(write: Write) -> None:
    write("robot.yaml", ROBOT_YAML)
    in_python = blueprint(
        "two",
        include(
            ROBOT,
            namespace="robot1",
            remap={"walk.cmd_vel": "base_vel"},
            set={"walk.distance_m": 1.2, "camera.lens.zoom": 3.0},
        ),
        include(ROBOT, namespace="robot2"),
        module(toy_modules.Wheels, restart="always", remap={"cmd_vel": "/robot1/base_vel"}),
        description="Two robots",
        external=("/map#nav_msgs.OccupancyGrid",),
    )
    in_yaml = resolve(write("two.yaml", YAML))
    assert in_python == in_yaml
    assert list(in_python.modules) == list(in_yaml.modules)
    assert wire(in_python) == wire(in_yaml)
    assert in_python != ROBOT
    assert Blueprint.model_validate_json(in_python.model_dump_json()) == in_python


def test_streams_of_equal_name_and_type_connect_by_themselves() -> None:
    wiring = wire(blueprint("x", module(toy_modules.Camera), module(toy_modules.Walk), module(toy_modules.Wheels)))
    assert wiring["camera"].topics["color_image"] == wiring["walk"].topics["color_image"] == "/color_image"
    assert wiring["walk"].topics["cmd_vel"] == wiring["wheels"].topics["cmd_vel"] == "/cmd_vel"


def test_a_stock_blueprint_can_be_included_by_name(write: Write) -> None:
    path = write("robot.yaml", ROBOT_YAML)
    assert blueprint("robot", include(path)) == ROBOT


def test_names_come_from_classes() -> None:
    assert module(toy_modules.ScanAsPictures).name == "scan_as_pictures"
    assert module("some.where:HTTPServer2Go").name == "http_server2_go"
    assert module(toy_modules.Camera, name="front").name == "front"


def test_config_takes_settings_whose_names_are_taken() -> None:
    spec = module("some.where:Thing", config={"name": "x", "path": Path("/tmp")}, size=(1, 2))
    assert spec.config == {"name": "x", "path": "/tmp", "size": [1, 2]}


def test_two_modules_of_one_name_are_refused() -> None:
    with pytest.raises(BlueprintError, match=r"module 'camera' is there twice \(also at .*test_compose.py:\d+\)"):
        blueprint("x", ROBOT, module(toy_modules.Camera))


def test_modules_that_two_parts_bring_from_one_place_are_told_in_a_line() -> None:
    other = blueprint("other", ROBOT, module(toy_modules.Walk, name="second"))
    with pytest.raises(
        BlueprintError, match=r"^'other' brings modules that 'robot' has brought already: .*camera"
    ) as error:
        blueprint("x", ROBOT, other)
    assert len(error.value.problems) == 1


def test_mistakes_in_python_are_user_errors() -> None:
    class Local(toy_modules.Camera):
        pass

    with pytest.raises(UserError, match="Local can't be imported by another process"):
        module(Local)
    with pytest.raises(UserError, match=r"restart can't be 'alway': use one of never, .*; did you mean 'always'"):
        module(toy_modules.Camera, restart="alway")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="'A-b' can't be a name"):
        module(toy_modules.Camera, name="A-b")
    with pytest.raises(UserError, match="'two words' can't be a name"):
        module(toy_modules.Camera, process="two words")
    with pytest.raises(UserError, match="'' can't be a name"):
        ROBOT.namespaced("a//b")
    with pytest.raises(UserError, match="has no module 'wlk'; did you mean 'walk'"):
        ROBOT.remap({"wlk.cmd_vel": "x"})


names = st.from_regex(r"[a-z][a-z0-9]{0,3}(_[a-z0-9]{1,3})?", fullmatch=True)
namespaces = st.lists(names, min_size=1, max_size=3).map("/".join)
topics = st.none() | names | namespaces.map(lambda path: f"/{path}")
remaps = st.dictionaries(st.sampled_from(["a", "b", "c"]), topics)
STREAMS = ("a", "b", "c", "d")


def topics_of(found: Blueprint) -> dict[str, str | None]:
    return {f"{spec.name}.{stream}": spec.topic(stream) for spec in found.modules.values() for stream in STREAMS}


def at(name: str, remap: dict[str, str | None]) -> dict[str, str | None]:
    return {f"{name}.{stream}": topic for stream, topic in remap.items()}


def one(own: dict[str, str | None]) -> Blueprint:
    return blueprint("x", ModuleSpec(name="m", type="a:B", remap=own), external=("in#std_msgs.String", "/abs#x.Y"))


@pytest.mark.slow
@given(remaps, namespaces)
def test_a_topic_is_its_namespace_and_its_name_or_absolute(own: dict[str, str | None], namespace: str) -> None:
    for address, topic in topics_of(one(own).namespaced(namespace)).items():
        target = own.get(address.rpartition(".")[2], address.rpartition(".")[2])
        if target is None or target.startswith("/"):
            assert topic == target
        else:
            assert topic == f"/{namespace}/{target}"


@pytest.mark.slow
@given(remaps, namespaces, namespaces)
def test_namespaces_nest(own: dict[str, str | None], inner: str, outer: str) -> None:
    assert one(own).namespaced(inner).namespaced(outer) == one(own).namespaced(f"{outer}/{inner}")


@pytest.mark.slow
@given(remaps, remaps, namespaces)
def test_remapping_and_namespaces_commute(
    own: dict[str, str | None], remap: dict[str, str | None], namespace: str
) -> None:
    before = one(own).remap(at("m", remap)).namespaced(namespace)
    after = one(own).namespaced(namespace).remap(at(f"{namespace}/m", remap))
    assert before == after
    assert before.external == (f"{namespace}/in#std_msgs.String", "/abs#x.Y")


@pytest.mark.slow
@given(remaps, remaps, remaps)
def test_a_later_remap_wins_and_leaves_the_others(
    own: dict[str, str | None], first: dict[str, str | None], second: dict[str, str | None]
) -> None:
    both = one(own).remap(at("m", first)).remap(at("m", second))
    assert both == one({**own, **first, **second})


@pytest.mark.slow
@given(remaps, namespaces, namespaces)
def test_namespaces_apart_share_absolute_topics_only(own: dict[str, str | None], left: str, right: str) -> None:
    if left == right:
        return
    targets = {stream: own.get(stream, stream) for stream in STREAMS}
    relative = [stream for stream, target in targets.items() if target and not target.startswith("/")]
    mine, other = topics_of(one(own).namespaced(left)), topics_of(one(own).namespaced(right))
    assert all(mine[f"{left}/m.{stream}"] != other[f"{right}/m.{stream}"] for stream in relative)
