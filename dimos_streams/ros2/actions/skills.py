"""Actions of ROS as skills: their descriptions, arguments and results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dimos_streams.errors import UserError
from dimos_streams.ros2.actions.client import ActionClient
from dimos_streams.ros2.actions.goal_values import Limits, completed, schema_of
from dimos_streams.ros2.actions.run import ActionReport, ActionRun, Robot
from dimos_streams.ros2.config import ActionSetting
from dimos_streams.ros2.definitions import NAVIGATE_TO_POSE, ActionType, action_type, known_action
from dimos_streams.skill import BASE, ODOM, Call, SkillPolicy, SkillSpec
from dimos_streams.tool_stream.arguments.schema_parameters import SchemaParameters

FARTHEST_M = 1000.0


class ActionModule(Robot, Protocol):
    """The protocol of what the skills need of the module that has them."""

    def client(self, skill: str) -> ActionClient:
        """The client of a skill's action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationReport:
    """The pose at which the robot's own navigation has arrived; metres and degrees in ``frame``."""

    x: float
    y: float
    heading_deg: float
    frame: str

    def __str__(self) -> str:
        return f"Arrived at x {self.x:.2f} m, y {self.y:.2f} m, heading {self.heading_deg:.0f} deg in {self.frame!r}"


def type_of(setting: ActionSetting) -> ActionType:
    """The type of a row's action. Raises ``UserError`` for one that is not known and not, or badly, defined."""
    if setting.definition:
        return action_type(setting.type, setting.definition, setting.types)
    known = known_action(setting.type)
    if known is None:
        raise UserError(f"{setting.type} needs a definition, the text of its .action file, in 'definition'")
    return known


def skill_of(name: str, setting: ActionSetting) -> SkillSpec:
    """The skill that a row makes of its action. Raises ``UserError``."""
    kind = type_of(setting)
    policy = SkillPolicy(
        resources=(BASE,) if setting.moves else (),
        motion=setting.moves,
        tags=setting.tags if setting.moves or "tags" in setting.model_fields_set else (),
        frame=setting.frame if setting.type == NAVIGATE_TO_POSE else ODOM,
        approval=setting.approval,
        on_duplicate="reject",
        time_limit_s=setting.time_limit_s,
    )
    if setting.type == NAVIGATE_TO_POSE and not setting.definition:
        return _navigation(name, setting, policy)

    async def run(module: ActionModule, call: Call, **arguments: Any) -> ActionReport:
        client = module.client(name)
        action = ActionRun(client, call, module if setting.moves else None)
        return await action.run(completed(kind.goal, arguments), f"{client.action} has accepted the goal")

    schema = schema_of(kind.goal, setting.limits)
    description = setting.description or f"Have the robot carry out {setting.type.rpartition('/')[2]}, to its end."
    return SkillSpec(name, run, policy, SchemaParameters(schema), description, "call")


def _navigation(name: str, setting: ActionSetting, policy: SkillPolicy) -> SkillSpec:
    async def run(module: ActionModule, call: Call, x: float, y: float, heading_deg: float = 0.0) -> NavigationReport:
        action = ActionRun(module.client(name), call, module, resumes=True, describe=_to_go)
        doing = f"On the way to x {x:.2f} m, y {y:.2f} m in {setting.frame!r}"
        await action.run({"pose": _pose(x, y, heading_deg, setting.frame), "behavior_tree": ""}, doing)
        return NavigationReport(x=x, y=y, heading_deg=heading_deg, frame=setting.frame)

    description = setting.description or (
        f"Have the robot's own navigation drive it to a point of the frame {setting.frame!r}, around what is in its "
        "way, and answer on arrival."
    )
    return SkillSpec(name, run, policy, SchemaParameters(_navigation_schema(setting.limits)), description, "call")


def _navigation_schema(limits: Limits) -> dict[str, Any]:
    known = {
        "x": ("Metres along the frame's x axis.", (-FARTHEST_M, FARTHEST_M)),
        "y": ("Metres along the frame's y axis.", (-FARTHEST_M, FARTHEST_M)),
        "heading_deg": ("Degrees to face there, counter-clockwise from x; 0 if left out.", (-360.0, 360.0)),
    }
    for path in limits:
        if path not in known:
            raise UserError(f"limits: {path!r} is no number of the goal (they are {', '.join(known)})")
    properties = {}
    for path, (text, usual) in known.items():
        least, greatest = limits.get(path, usual)
        properties[path] = {"type": "number", "minimum": least, "maximum": greatest, "description": text}
    return {"type": "object", "properties": properties, "required": ["x", "y"]}


def _pose(x: float, y: float, heading_deg: float, frame: str) -> dict[str, Any]:
    half = math.radians(heading_deg) / 2
    return {
        "header": {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": frame},
        "pose": {
            "position": {"x": x, "y": y, "z": 0.0},
            "orientation": {"x": 0.0, "y": 0.0, "z": math.sin(half), "w": math.cos(half)},
        },
    }


def _to_go(feedback: Mapping[str, Any]) -> str:
    left = feedback["distance_remaining"]
    seconds = feedback["estimated_time_remaining"]["sec"]
    return f"{left:.1f} m to go{f', about {seconds} s' if seconds > 0 else ''}"
