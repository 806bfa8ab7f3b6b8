"""Actions as a blueprint's rows define them: their skills, their arguments, and what is wrong with a row."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from dimos_streams.common.invalid import problems_with_values
from dimos_streams.ros2.actions.goal_values import completed, schema_of
from dimos_streams.ros2.actions.skills import skill_of
from dimos_streams.ros2.actions.types import GoalStatus
from dimos_streams.ros2.cdr import encode
from dimos_streams.ros2.config import ActionSetting, Ros2RobotConfig
from dimos_streams.ros2.definitions import action_type
from dimos_streams.ros2.module import Ros2Robot
from dimos_streams.tool_stream.arguments.schema_parameters import SchemaParameters
from dimos_streams.tool_stream.event import Outcome
from tests.ros2.action_world import GRIP, NAVIGATE, world

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("G4")]


async def test_an_action_that_the_blueprint_defines_is_a_skill_with_its_schema() -> None:
    async with world({"grip": GRIP}) as at:
        spec = at.harness.module.offered_skills()["grip"]
        info = spec.info()
        assert (info.description, info.resources, info.motion) == ("Close the gripper.", (), False)
        properties = info.parameters["properties"]
        assert properties["width"] == {"type": "number", "minimum": 0, "maximum": 1}
        assert properties["forces"]["items"]["properties"]["newton"]["maximum"] == 20
        assert info.parameters["required"] == ["width", "forces"]
        call = await at.harness.call("grip", width=0.25, forces=[{"newton": 2.5}])
        assert await call.answer() == "/arm/grip has accepted the goal"
        goal = at.server.goals[at.server.newest]
        assert goal["width"] == 0.25
        assert [force["newton"] for force in goal["forces"]] == [2.5]
        at.server.feedback({"width": float("nan"), "place": [1.0, 2.0, 3.0]})
        event = await call.wait_for(lambda event: event.type == "progress")
        assert event.data["feedback"] == {"width": None, "place": [1.0, 2.0, 3.0]}
        at.server.end(GoalStatus.SUCCEEDED, {"held": True, "notes": ["firm"]})
        assert await call.result() == {"action": "/arm/grip", "result": {"held": True, "notes": ["firm"]}}


def test_a_whole_number_with_a_point_is_one_for_a_goal_as_for_its_schema() -> None:
    goal = action_type("arm_msgs/action/Step", "int32 count\nuint8[] bits\nfloat32 speed\n---\n---\n", {}).goal
    given = SchemaParameters(schema_of(goal, {})).validate("step", {"count": 5.0, "bits": [1.0], "speed": 2.0})
    assert encode(goal, completed(goal, given)) == encode(goal, {"count": 5, "bits": [1], "speed": 2.0})


@pytest.mark.parametrize(
    ("skill", "actions", "arguments", "text"),
    [
        ("navigate_to", NAVIGATE, {"x": 6.0, "y": 0.0}, "x: "),
        ("navigate_to", NAVIGATE, {"x": 1.0}, "y: is missing"),
        ("navigate_to", NAVIGATE, {"x": 1.0, "y": 0.0, "z": 0.0}, "z"),
        ("grip", {"grip": GRIP}, {"width": 0.5, "forces": [{"newton": 21}]}, "forces"),
        ("grip", {"grip": GRIP}, {"width": "wide", "forces": []}, "width: "),
    ],
)
async def test_arguments_out_of_the_limits_are_refused_before_anything_is_sent(
    skill: str, actions: dict[str, Any], arguments: dict[str, Any], text: str
) -> None:
    async with world(actions) as at:
        call = await at.harness.call(skill, **arguments)
        closed = await call.closed()
        assert closed.outcome is Outcome.REJECTED
        assert text in closed.text
        assert at.server.goals == {}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"type": "a_msgs/action/B"}, "a_msgs/action/B needs a definition, the text of its .action file"),
        ({"type": "a_msgs/action/B", "definition": "int32 x"}, "the definition of a_msgs/action/B has 1 parts"),
        (
            {"type": "a_msgs/action/B", "definition": "int32 x\nfloat y\n---\n---\n"},
            "a_msgs/action/B_Goal, line 2: a_msgs/msg/float is no known type; did you mean 'float32' or 'float64'?",
        ),
        ({"type": "a_msgs/action/B", "definition": "int32\n---\n---\n"}, "line 1: 'int32' is not of the form"),
        ({"limits": {"z": [0, 1]}}, "limits: 'z' is no number of the goal (they are x, y, heading_deg)"),
        (
            {"type": "a_msgs/action/B", "definition": "C c\n---\n---\n", "types": {"a_msgs/msg/C": "C c"}},
            "types are nested more than 20 deep, or in themselves",
        ),
    ],
)
async def test_a_row_that_can_not_be_is_named_by_check(row: dict[str, Any], text: str) -> None:
    config = Ros2RobotConfig.model_validate({"actions": {"go": {"action": "b", **row}}})
    (fault,) = Ros2Robot.problems(config)
    assert fault.path == ("actions", "go")
    assert text in fault.text


def test_navigation_says_in_which_frame_its_goals_are() -> None:
    frames = [{}, {"frame": "odom"}, {"type": "arm_msgs/action/Grip", "definition": "float32 x\n---\n---\n"}]
    rows = [ActionSetting.model_validate({"action": "go", **row}) for row in frames]
    assert [skill_of("go", row).policy.frame for row in rows] == ["map", "odom", "odom"]


def test_an_action_that_moves_nothing_is_not_tagged_as_motion() -> None:
    row = {"action": "grip", "type": "arm_msgs/action/Grip", "definition": "float32 width\n---\n---\n"}
    rows = [row, row | {"moves": False}, row | {"moves": False, "tags": ("motion", "arm")}]
    tags = [tuple(skill_of("grip", ActionSetting.model_validate(each)).policy.tags) for each in rows]
    assert tags == [("motion",), (), ("motion", "arm")]


@pytest.mark.parametrize(
    ("row", "where", "text"),
    [
        ({"limits": {"x": [math.nan, math.nan]}}, "actions.go.limits.x.0", "it must be a finite number (given: nan)"),
        ({"limits": {"x": [-math.inf, 5]}}, "actions.go.limits.x.0", "it must be a finite number (given: -inf)"),
        ({"limits": {"x": [5, -5]}}, "actions.go.limits.x", "the least value, 5, is more than the greatest, -5"),
        ({"time_limit_s": math.inf}, "actions.go.time_limit_s", "it must be a finite number (given: inf)"),
        ({"answer_timeout_s": math.inf}, "actions.go.answer_timeout_s", "it must be a finite number (given: inf)"),
    ],
)
def test_a_number_that_bounds_nothing_is_named_with_its_key(row: dict[str, Any], where: str, text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Ros2RobotConfig.model_validate({"actions": {"go": {"action": "b", **row}}})
    assert problems_with_values(refused.value, "it")[where].startswith(text)
