"""Pictures of blueprints."""

from __future__ import annotations

import json

import pytest

from dimos_streams.blueprint import BlueprintError, blueprint, include, module
from dimos_streams.blueprint.graph import render
from tests.blueprint import toy_modules

ROBOT = blueprint(
    "robot",
    module(toy_modules.Camera),
    module(toy_modules.Walk, process="body"),
    module(toy_modules.Wheels, process="body"),
    description="A camera on wheels",
    external=("map#nav_msgs.OccupancyGrid", "/scan#sensor_msgs.LaserScan"),
)

TEXT = """\
robot: A camera on wheels

process camera
└─ camera  (tests.blueprint.toy_modules:Camera)
     ▶ /color_image  sensor_msgs.Image       walk

process body
├─ walk  (tests.blueprint.toy_modules:Walk)
│    ◀ /color_image  sensor_msgs.Image       camera
│    ◀ /scan         sensor_msgs.LaserScan   outside
│    ▶ /cmd_vel      geometry_msgs.Twist     wheels
│    skills: walk
└─ wheels  (tests.blueprint.toy_modules:Wheels)
     ◀ /cmd_vel      geometry_msgs.Twist     walk"""

MERMAID = """\
flowchart LR
  subgraph process_camera["camera"]
    module_camera["<b>camera</b>"]
  end
  subgraph process_body["body"]
    module_walk["<b>walk</b><br/>walk()"]
    module_wheels["<b>wheels</b>"]
  end
  outside((outside))
  module_camera -- "/color_image" --> module_walk
  module_walk -- "/cmd_vel" --> module_wheels
  outside -- "/scan" --> module_walk"""


def test_text() -> None:
    assert render(ROBOT) == TEXT


def test_mermaid() -> None:
    assert render(ROBOT, "mermaid") == MERMAID


def test_json() -> None:
    drawn = json.loads(render(ROBOT, "json"))
    assert drawn["blueprint"] == "robot"
    assert [(node["module"], node["process"], node["skills"]) for node in drawn["nodes"]] == [
        ("camera", "camera", []),
        ("walk", "body", ["walk"]),
        ("wheels", "body", []),
    ]
    assert [(edge["source"], edge["channel"], edge["target"]) for edge in drawn["edges"]] == [
        ("camera", "/color_image#sensor_msgs.Image", "walk"),
        ("walk", "/cmd_vel#geometry_msgs.Twist", "wheels"),
        (None, "/map#nav_msgs.OccupancyGrid", None),
        (None, "/scan#sensor_msgs.LaserScan", "walk"),
    ]


def test_unwired_inputs_and_outputs_that_nobody_reads_are_shown() -> None:
    drawn = render(blueprint("x", include(ROBOT.remap({"walk.scan": None, "wheels.cmd_vel": None}), namespace="r")))
    assert "/r/cmd_vel      geometry_msgs.Twist" in drawn
    assert "(nobody)" in drawn
    assert "unwired: scan" in drawn
    assert "skills: r_walk" in drawn


def test_a_class_that_is_missing_is_an_error() -> None:
    with pytest.raises(BlueprintError, match="no Python module 'no_such'"):
        render(blueprint("x", module("no_such:Thing")))


def test_an_empty_blueprint_can_be_drawn() -> None:
    assert render(blueprint("x")) == "x"
    assert render(blueprint("x"), "mermaid") == "flowchart LR"


def test_a_name_with_line_ends_is_one_line() -> None:
    assert render(blueprint("mine\nerror: 1 problem")) == r"mine\nerror: 1 problem"
