"""Blueprints that name machines: who runs what, what crosses, and by whose clock messages are stamped."""

from __future__ import annotations

from typing import ClassVar

import pytest

from dimos_streams.blueprint import BlueprintError, blueprint, include, module
from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.graph import graph, render
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.machines import digest_of, machines_of, part_of
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.stamps import stamping_machines
from dimos_streams.blueprint.wiring import wire
from dimos_streams.errors import UserError
from dimos_streams.messages.sensor_msgs import Image
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.runtime.plan import plan_modules
from dimos_streams.streams import In, Out
from tests.blueprint import toy_modules
from tests.blueprint.checked import check_reference
from tests.blueprint.conftest import Write

pytestmark = pytest.mark.feature("H1")

TOY = "tests.blueprint.toy_modules"
FILE = f"""
modules:
  camera: {{type: "{TOY}:Camera"}}
  walk: {{type: "{TOY}:Walk", config: {{label: you}}, machine: brain-side}}
  wheels: {{type: "{TOY}:Wheels"}}
external: [scan#sensor_msgs.LaserScan]
machines:
  robot-side: [camera, wheels]
"""


class Onlooker(Module):
    """Shows whatever there is."""

    sees_channels = True
    config: ModuleConfig


class Looker(Module):
    """Says of each picture what it shows, with the picture's stamp."""

    stamped_as: ClassVar[dict[str, tuple[str, ...]]] = {"detections": ("depth_image", "color_image")}
    config: ModuleConfig
    depth_image: In[Image] = In(required=False)
    color_image: In[Image] = In(required=False)
    detections: Out[Detection2DArray]


def split() -> Blueprint:
    return blueprint(
        "split",
        module(toy_modules.Camera),
        module(toy_modules.Walk, machine="brain-side", label="you"),
        module(toy_modules.Wheels),
        external=("scan#sensor_msgs.LaserScan",),
        machines={"robot-side": ["camera", "wheels"]},
    )


def test_a_file_and_python_say_the_same_and_a_part_takes_what_crosses_from_outside(write: Write) -> None:
    whole = resolve(write("split.yaml", FILE))
    assert whole == split()
    assert digest_of(whole) == digest_of(split())
    assert machines_of(whole) == ("robot-side", "brain-side")
    assert check(whole) == []

    robot, brain = (part_of(whole, machine) for machine in machines_of(whole))
    assert list(robot.modules) == ["camera", "wheels"]
    assert robot.external == ("scan#sensor_msgs.LaserScan", "/cmd_vel#geometry_msgs.Twist")
    assert brain.external == ("scan#sensor_msgs.LaserScan", "/color_image#sensor_msgs.Image")
    for part in (robot, brain):
        assert check(part) == []
        assert all(plan.channels == {} for plan in plan_modules(part)), "nobody asks for them"
        assert {name: wiring.topics for name, wiring in wire(part).items()} == {
            name: wire(whole)[name].topics for name in part.modules
        }
    assert digest_of(whole) != digest_of(whole.configured({"walk.label": "me"}))
    with pytest.raises(UserError, match=r"no machine 'robot_side'.*robot-side.*\(machines: robot-side, brain-side\)"):
        part_of(whole, "robot_side")
    with pytest.raises(UserError, match="names none"):
        part_of(blueprint("one", module(toy_modules.Camera)), "robot-side")


def test_each_robot_of_a_namespace_has_machines_of_its_own() -> None:
    two = blueprint("two", include(split(), namespace="a"), include(split(), namespace="b"))
    assert machines_of(two) == ("a/robot-side", "a/brain-side", "b/robot-side", "b/brain-side")
    assert list(part_of(two, "b/robot-side").modules) == ["b/camera", "b/wheels"]


def test_what_no_machine_could_run_has_a_place(write: Write) -> None:
    text = FILE.replace("[camera, wheels]", "[camera]")
    found = [str(problem) for problem in check_reference(write("x.yaml", text))[1]]
    assert any("x.yaml:5" in text and "'wheels' is on no machine" in text for text in found)
    for wrong, why in (
        (
            FILE.replace("[camera, wheels]", "[camera, wheel]"),
            r"no module 'wheel', did you mean 'wheels'|no module 'wheel'",
        ),
        (FILE + "  other: [camera]\n", "module 'camera' can be on one machine only"),
        (FILE.replace("robot-side", "Robot"), "'Robot' can't be the name of a machine"),
        (FILE.replace("brain-side", "brain side"), "'brain side' can't be the name of a machine"),
    ):
        with pytest.raises(BlueprintError, match=why):
            load_text(write, wrong)
    with pytest.raises(UserError, match="can't be on both 'a' and 'b'"):
        blueprint("x", module(toy_modules.Camera), machines={"a": ["camera"], "b": ["camera"]})


def load_text(write: Write, text: str) -> Blueprint:
    return resolve(write("wrong.yaml", text))


def test_a_graph_has_the_whole_and_says_what_is_where() -> None:
    whole = resolve("follow-person-split")
    assert check(whole) == []
    nodes = {node.module: node.machine for node in graph(whole).nodes}
    assert nodes["robot"] == nodes["gate"] == "robot-side"
    assert set(nodes.values()) == {"robot-side", "brain-side"}
    drawn = render(whole)
    assert "process skills on robot-side\n├─ follow" in drawn
    assert "process skills on brain-side\n├─ lookout" in drawn
    assert "detector on brain-side" in drawn
    assert 'subgraph machine_robot_side["robot-side"]' in render(whole, "mermaid")


def test_stamps_are_those_of_the_machine_that_measured() -> None:
    pictures = blueprint("x", module(toy_modules.Camera, machine="robot"), module(Looker, machine="brain"))
    assert stamping_machines(pictures) == {"/color_image": "robot", "/detections": "robot"}
    outside = blueprint("x", module(Looker, machine="brain"), external=("color_image#sensor_msgs.Image",))
    assert stamping_machines(outside) == {"/detections": ""}
    both = blueprint(
        "x",
        module(toy_modules.Camera, machine="robot"),
        module(toy_modules.Camera, name="other", machine="brain"),
        module(Looker, machine="brain"),
    )
    assert stamping_machines(both)["/detections"].startswith("?")
    assert stamping_machines(blueprint("one", module(toy_modules.Camera))) == {}
    assert stamping_machines(resolve("follow-person-split"))["/detections"] == "robot-side"


def test_who_shows_whatever_there_is_knows_the_channels_of_all_machines() -> None:
    robot = blueprint(
        "robot", module(toy_modules.Camera, machine="robot-side"), module(toy_modules.Wheels, machine="robot-side")
    )
    whole = blueprint(
        "two",
        include(robot, namespace="r1"),
        module(Looker, machine="brain-side", remap={"depth_image": None, "color_image": "/r1/color_image"}),
        module(Onlooker, machine="brain-side"),
        external=("r1/scan#sensor_msgs.LaserScan", "joy#geometry_msgs.Twist"),
    )
    for blueprint_ in (whole, part_of(whole, "brain-side")):
        onlooker = next(plan for plan in plan_modules(blueprint_) if plan.spec.name == "onlooker")
        assert onlooker.channels == {
            "/detections#vision_msgs.Detection2DArray": "",
            "/joy#geometry_msgs.Twist": "",
            "/r1/color_image#sensor_msgs.Image": "r1" if blueprint_ is whole else "",
            "/r1/scan#sensor_msgs.LaserScan": "r1" if blueprint_ is whole else "",
        }
