"""What ``check`` finds in how modules are wired: streams, topics, types, names of skills."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.blueprint import blueprint, include, module
from dimos_streams.blueprint.check import check, refuse_errors
from dimos_streams.blueprint.graph import graph
from dimos_streams.blueprint.load import load
from dimos_streams.blueprint.wiring import wire
from dimos_streams.bridge.module import Bridge
from tests.blueprint import toy_modules
from tests.blueprint.checked import found_in
from tests.blueprint.conftest import Write

CAMERA = "tests.blueprint.toy_modules:Camera"
IMAGE = "color_image#sensor_msgs.Image"
WALK = "tests.blueprint.toy_modules:Walk"
ROBOT = blueprint("robot", module(toy_modules.Camera), module(toy_modules.Walk), module(toy_modules.Wheels))


class OwnBridge(Bridge):
    """A bridge as an author makes one."""


def test_remaps_of_streams_that_do_not_exist(write: Write) -> None:
    text = f"modules:\n  camera:\n    type: {CAMERA}\n    remap:\n      colour_image: a\n      depth: b\n"
    assert found_in(write, text) == [
        "x.yaml:5: module 'camera' has no stream 'colour_image' to remap; did you mean 'color_image'?",
        "x.yaml:6: module 'camera' has no stream 'depth' to remap (streams: color_image)",
    ]


def test_outputs_can_not_be_left_unwired(write: Write) -> None:
    text = f"modules:\n  camera:\n    type: {CAMERA}\n    remap:\n      color_image: null\n"
    assert found_in(write, text) == [
        "x.yaml:5: module 'camera' publishes on 'color_image': only inputs can be left unwired"
    ]


def test_one_topic_with_two_types(write: Write) -> None:
    text = f"""\
        modules:
          camera: {{type: 'tests.blueprint.toy_modules:ScanAsPictures'}}
          walk: {{type: '{WALK}'}}
    """
    assert found_in(write, text) == [
        "x.yaml:3: topic '/color_image' has 2 types: "
        "sensor_msgs.LaserScan by camera.color_image; sensor_msgs.Image by walk.color_image; "
        "/color_image is there, as sensor_msgs.LaserScan, but walk.color_image takes sensor_msgs.Image: "
        "remap walk.color_image to a topic of its type, or convert it in a module of your own"
    ]


def test_the_remap_is_named_that_brought_two_types_together_not_the_file_that_it_includes(write: Write) -> None:
    text = "include:\n  - blueprint: follow-person\n    remap:\n      {stream}: scan\n"
    for stream in ("follow.odom", "follow.cmd_vel"):
        lines = found_in(write, text.replace("{stream}", stream))
        (line,) = (line for line in lines if "topic '/scan' has 2 types" in line)
        assert line.startswith("x.yaml:4: "), lines


def test_the_remap_is_named_that_made_two_publishers(write: Write) -> None:
    text = f"""\
        modules:
          one:
            type: {CAMERA}
            remap:
              color_image: color_image
          other: {{type: {CAMERA}}}
    """
    (line,) = found_in(write, text)
    assert line.startswith("x.yaml:5: warning: channel '/color_image#sensor_msgs.Image' has 2 publishers")


def test_an_external_channel_of_another_type(write: Write) -> None:
    text = f"modules:\n  walk: {{type: '{WALK}'}}\nexternal: [color_image#sensor_msgs.LaserScan]\n"
    assert found_in(write, text) == [
        "x.yaml:2: topic '/color_image' has 2 types: "
        "sensor_msgs.Image by walk.color_image; sensor_msgs.LaserScan by outside; "
        "/color_image is there, as sensor_msgs.LaserScan, but walk.color_image takes sensor_msgs.Image: "
        "remap walk.color_image to a topic of its type, or convert it in a module of your own"
    ]


TOYS = "tests.blueprint.toy_modules"


def test_a_topic_of_another_type_is_named_with_what_to_do(write: Write) -> None:
    text = f"modules:\n  walk: {{type: '{TOYS}:Plodder'}}\nexternal: [odom#geometry_msgs.PoseStamped]\n"
    (problem,) = found_in(write, text)
    assert problem.endswith(
        "; /odom is there, as geometry_msgs.PoseStamped, but walk.odom takes nav_msgs.Odometry: "
        "declare it as In(also=OdometryFromPoses), from dimos_streams.messages.odometry"
    )


@pytest.mark.parametrize(
    "sent",
    [
        "external: [odom#geometry_msgs.PoseStamped]",
        "external: [odom#nav_msgs.Odometry]",
        "external: [odom#nav_msgs.Odometry, odom#geometry_msgs.PoseStamped]",
        f"  survey: {{type: '{TOYS}:Surveyor'}}",
    ],
)
def test_an_input_of_two_types_is_fed_by_either_of_them(write: Write, sent: str) -> None:
    text = f"modules:\n  walk: {{type: '{TOYS}:Easygoer'}}\n{sent}\n"
    assert found_in(write, text) == []
    made = load(Path(write("x.yaml", text)))
    assert wire(made)["walk"].topics == {"odom": "/odom"}
    assert all(edge.target == "walk" for edge in graph(made).edges)


def test_an_input_of_two_types_needs_one_of_them(write: Write) -> None:
    text = f"modules:\n  walk: {{type: '{TOYS}:Easygoer'}}\n"
    (problem,) = found_in(write, text)
    assert "module 'walk' requires its input 'odom', but nothing publishes '/odom#nav_msgs.Odometry'" in problem
    mixed = text + f"  other: {{type: '{TOYS}:Plodder'}}\nexternal: [odom#nav_msgs.Odometry]\n"
    assert found_in(write, mixed) == []
    (problem,) = found_in(write, mixed.replace("nav_msgs.Odometry", "geometry_msgs.PoseStamped"))
    assert "nav_msgs.Odometry or geometry_msgs.PoseStamped by walk.odom; nav_msgs.Odometry by other.odom" in problem


def test_a_required_input_that_nothing_feeds(write: Write) -> None:
    text = f"modules:\n  walk: {{type: '{WALK}'}}\n"
    needs = "module 'walk' requires its input 'color_image', but nothing publishes '/color_image#sensor_msgs.Image'"
    assert found_in(write, text) == [f"x.yaml:2: {needs}; no module has an output of that type"]
    text += f"  camera:\n    type: {CAMERA}\n    remap: {{color_image: front}}\n"
    assert found_in(write, text) == [f"x.yaml:2: {needs}; outputs of that type: camera.color_image (/front)"]
    assert found_in(write, text + "external: [color_image#sensor_msgs.Image]\n") == []


def test_a_required_input_that_is_left_unwired_on_purpose(write: Write) -> None:
    text = (
        f"modules:\n  camera: {{type: '{CAMERA}'}}\n  walk:\n    type: {WALK}\n    remap:\n      color_image: null\n"
    )
    assert found_in(write, text) == [
        "x.yaml:6: module 'walk' requires its input 'color_image', it can't be left unwired: "
        "remap walk.color_image to a topic"
    ]


def test_an_optional_input_may_stay_unwired() -> None:
    wiring = wire(ROBOT)["walk"]
    assert wiring.topics == {"color_image": "/color_image", "cmd_vel": "/cmd_vel"}
    assert wiring.unwired == ("scan",)


def test_colliding_names_of_skills(write: Write) -> None:
    text = f"""\
        external: [/color_image#sensor_msgs.Image]
        modules:
          one: {{type: '{WALK}', remap: {{color_image: /color_image, cmd_vel: one_vel}}}}
          two: {{type: '{WALK}', remap: {{color_image: /color_image, cmd_vel: two_vel}}}}
    """
    assert found_in(write, text) == [
        "x.yaml:4: skill 'walk' is offered by both 'one' and 'two'; use another namespace"
    ]


def test_skills_collide_over_namespaces() -> None:
    robot = blueprint("robot", module(toy_modules.Walk, remap={"color_image": "/image"}))
    twice = blueprint(
        "twice",
        include(robot, namespace="a/b"),
        include(robot, namespace="a_b"),
        external=("/image#sensor_msgs.Image",),
    )
    [problem] = check(twice)
    assert problem.text == "skill 'a_b_walk' is offered by both 'a/b/walk' and 'a_b/walk'; use another namespace"
    apart = blueprint(
        "apart", include(robot, namespace="a"), include(robot, namespace="b"), external=("/image#sensor_msgs.Image",)
    )
    assert check(apart) == []
    assert [wiring.skills for wiring in wire(apart).values()] == [("a_walk",), ("b_walk",)]


def test_channels_that_are_too_long_or_no_topics(write: Write) -> None:
    text = f"""\
        modules:
          camera:
            type: {CAMERA}
            remap:
              color_image: {"a" * 60}
          other:
            type: {CAMERA}
            remap: {{color_image: 'two words'}}
    """
    long, spaced = found_in(write, text)
    assert long.startswith("x.yaml:5: camera.color_image: channel '/aaa")
    assert long.endswith(f"is 79 bytes long, LCM allows 63: shorten the topic '/{'a' * 60}' or its namespace by 16")
    assert spaced.startswith("x.yaml:8: other.color_image: '/two words' can't be a topic")


def test_several_publishers_of_a_channel_are_a_warning(write: Write) -> None:
    text = f"""\
        external: [color_image#sensor_msgs.Image]
        modules:
          walk: {{type: '{WALK}'}}
          sharing: {{type: 'tests.blueprint.toy_modules:Sharing'}}
    """
    assert found_in(write, text) == [
        "x.yaml:4: warning: channel '/cmd_vel#geometry_msgs.Twist' has 2 publishers: walk.cmd_vel, sharing.cmd_vel; "
        "remap one, or list it in the class's shared_outputs (walk.cmd_vel)"
    ]


@pytest.mark.parametrize("walker", [WALK, "tests.blueprint.toy_modules:Sharing"])
def test_what_goes_past_a_velocity_gate_is_an_error_that_names_the_way_through_it(write: Write, walker: str) -> None:
    """It would move a robot that is held, by an operator's stop too."""
    text = f"""\
        external: [color_image#sensor_msgs.Image, hold#dimos_streams.Hold]
        modules:
          gate: {{type: 'dimos_streams.robot.velocity_gate.module:VelocityGate'}}
          walk: {{type: '{walker}'}}
    """
    assert found_in(write, text) == [
        "x.yaml:4: what walk.cmd_vel would publish on '/cmd_vel#geometry_msgs.Twist' goes past 'gate', which could "
        "hold none of it back; remap it to /skill_vel or /teleop_vel"
    ]
    assert found_in(write, text.replace(f"'{walker}'", f"'{walker}', remap: {{cmd_vel: skill_vel}}")) == []


def test_who_runs_it_is_warned_too(settled_log: pytest.LogCaptureFixture) -> None:
    refuse_errors(blueprint("x", module(toy_modules.Sharing, name="a"), module(toy_modules.Walk), external=(IMAGE,)))
    (said,) = settled_log.messages
    assert "channel '/cmd_vel#geometry_msgs.Twist' has 2 publishers: a.cmd_vel, walk.cmd_vel; remap one" in said


def test_publishers_that_say_that_they_share_are_fine() -> None:
    assert check(blueprint("x", module(toy_modules.Sharing, name="a"), module(toy_modules.Sharing, name="b"))) == []


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        ("/scan", "must be of the form '/topic#package.Type': there is no such message type"),
        ("/scan#sensor_msgs.LaserScann", "no such message type; did you mean 'sensor_msgs.LaserScan'?"),
        ("/s can#sensor_msgs.LaserScan", "external '/s can#sensor_msgs.LaserScan': '/s can' can't be a topic"),
    ],
)
def test_bad_external_channels(write: Write, channel: str, expected: str) -> None:
    [line] = found_in(write, f"name: x\nexternal:\n  - {channel}\n")
    assert line.startswith("x.yaml:3: ")
    assert expected in line


@pytest.mark.feature("A12")
def test_a_bus_has_one_bridge(write: Write) -> None:
    write("robot.yaml", "modules:\n  bridge: {type: dimos_streams.bridge.module:Bridge}\n")
    text = """\
        include:
          - {blueprint: robot.yaml, namespace: robot1}
          - {blueprint: robot.yaml, namespace: robot2}
    """
    assert found_in(write, text) == [
        "robot.yaml:2: modules 'robot1/bridge' and 'robot2/bridge' would both be the Bridge of one bus, which has one"
        " for all robots and machines: leave one out (of an include, with `without: [bridge]`)"
    ]
    assert found_in(write, text.replace("robot2}", "robot2, without: [bridge]}")) == []


def test_a_bridge_of_ones_own_is_a_bridge_on_whatever_machine() -> None:
    own, other = module(OwnBridge, machine="a"), module(Bridge, name="other", machine="b")
    [problem] = check(blueprint("two", own, other))
    assert "'own_bridge' and 'other' would both be the Bridge of one bus" in problem.text
