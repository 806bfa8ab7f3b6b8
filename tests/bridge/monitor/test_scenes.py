"""What maps are shown besides robots: zones, way-points, goals and ways, from modules and plans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dimos_streams.agent.module import Agent
from dimos_streams.bridge.monitor.scenes import Scenes
from dimos_streams.module import MAX_STATE, Module, ModuleConfig
from dimos_streams.operator.messages.agent import AgentSnapshot
from dimos_streams.operator.messages.scene import GoalView, SceneView, WaypointView, scene_state
from dimos_streams.skill import SkillInfo
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from tests.bridge.monitor.toy_agent import ToyAgent, agents
from tests.bridge.monitor.watching_client import Console
from tests.helpers import until

ZONE = {"name": "stairs", "polygon": [[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]]}


class PlaceConfig(ModuleConfig):
    """Nothing to set."""


class Place(Module):
    """A module that knows of the floor."""

    config: PlaceConfig


def says(name: str, said: Any, *, age_s: float = 0.0) -> ModuleView:
    return ModuleView(name, "i1", 1, "ok", age_s, (), state={"scene": said})


def test_what_modules_of_a_namespace_say_is_put_together() -> None:
    scenes = Scenes()
    patrol = {"waypoints": [{"name": "1", "x": 2.0, "y": 3.0}]}
    drive = {"goal": {"x": 1.0, "y": 1.5}, "path": [[1.0, 1.5]]}
    found = scenes.of(
        [says("robot1/agent", {"zones": [ZONE]}), says("robot1/drive", drive), says("robot1/patrol", patrol)], {}
    )
    assert found.keys() == {"robot1"}
    scene = found["robot1"]
    assert [(zone.name, zone.restricted, len(zone.polygon)) for zone in scene.zones] == [("stairs", True, 3)]
    assert scene.waypoints == (WaypointView(name="1", x=2.0, y=3.0),)
    assert (scene.goal, scene.path, scene.frame_id) == (GoalView(x=1.0, y=1.5), ((1.0, 1.5),), "odom")
    gone = scenes.of([says("robot1/drive", drive, age_s=9.0)], {})["robot1"]
    assert (gone.goal, gone.path) == (None, ()), "who is not there goes nowhere"


def test_what_is_in_another_frame_than_the_zones_is_left_out() -> None:
    scenes = Scenes()
    route = {"frame_id": "map", "waypoints": [{"name": "1", "x": 2.0, "y": 3.0}], "goal": {"x": 2.0, "y": 3.0}}
    scene = scenes.of([says("a_route", route), says("agent", {"zones": [ZONE]})], {})[""]
    assert (len(scene.zones), scene.waypoints, scene.goal, scene.frame_id) == (1, (), None, "odom")
    alone = scenes.of([says("a_route", route)], {})[""]
    assert (alone.goal, alone.frame_id) == (GoalView(x=2.0, y=3.0), "map")


@pytest.mark.parametrize("said", [None, 7, [], {"zones": [{"name": 1}]}, {"goal": {"x": "far"}}, {"walls": []}])
def test_what_is_no_scene_is_left_out(said: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert Scenes().of([says("patrol", said)], {}) == {}


def test_the_way_of_a_plan_is_where_its_steps_go_that_were_not_made() -> None:
    agent = ToyAgent(name="robot1/agent")
    steps: list[Any] = [
        {"skill": "go_to", "arguments": {"x": 1, "y": 2.5}, "used": True},
        {"skill": "observe", "arguments": {}, "used": False},
        {"skill": "go_to", "arguments": {"x": 3, "y": 2.5}, "used": False},
        {"skill": "go_to", "arguments": {"x": "there", "y": None}},
        "nonsense",
    ]

    def path(state: str, steps: Any) -> list[tuple[float, float]]:
        plan = {"id": "p1", "goal": "look", "state": state, "reason": "", "steps": steps}
        found = Scenes().of([], {"robot1/agent": agent.snapshot().model_copy(update={"plan": plan})})
        return list(found["robot1"].path) if found else []

    assert path("approved", steps) == path("submitted", steps) == [(3.0, 2.5)]
    assert path("void", steps) == path("approved", 7) == []


def test_steps_whose_skill_goes_by_another_frame_than_the_zones_are_no_part_of_the_way() -> None:
    steps = [
        {"skill": "navigate_to_pose", "arguments": {"x": 1, "y": 2.5}},
        {"skill": "go_to", "arguments": {"x": 3, "y": 2.5}},
    ]
    plan = {"id": "p1", "goal": "look", "state": "approved", "reason": "", "steps": steps}
    shown = {"robot1/agent": ToyAgent(name="robot1/agent").snapshot().model_copy(update={"plan": plan})}
    skills = (
        SkillInfo(name="robot1_navigate_to_pose", description="Go", parameters={}, frame="map"),
        SkillInfo(name="robot1_go_to", description="Go", parameters={}),
    )
    drive = ModuleView("robot1/drive", "i1", 1, "ok", 0.0, skills)
    zones = says("robot1/place", {"zones": [ZONE]})
    assert Scenes().of([drive, zones], shown)["robot1"].path == ((3.0, 2.5),)
    on_map = Scenes().of([drive], {"robot1/agent": _without(shown["robot1/agent"], "go_to")})["robot1"]
    assert (on_map.path, on_map.frame_id) == (((1.0, 2.5),), "map")


def _without(agent: AgentSnapshot, skill: str) -> AgentSnapshot:
    assert agent.plan is not None
    steps = [step for step in agent.plan["steps"] if step["skill"] != skill]
    return agent.model_copy(update={"plan": {**agent.plan, "steps": steps}})


def test_what_is_too_much_for_a_heartbeat_is_left_out_from_the_end() -> None:
    zones = [{**ZONE, "name": f"zone {number}"} for number in range(20)]
    path = [(number / 8, 2.0) for number in range(1000)]
    state = scene_state(SceneView.model_validate({"zones": zones, "goal": {"x": 0.0, "y": 2.0}, "path": path}))
    assert len(json.dumps(state)) < MAX_STATE
    assert len(state["scene"]["zones"]) == 20
    assert state["scene"]["path"][:2] == [[0.0, 2.0], [0.125, 2.0]]
    assert scene_state(SceneView()) == {}


@pytest.mark.virtual_time
async def test_an_agent_says_where_its_zones_are() -> None:
    async with ModuleHarness(Agent, {"zones": [ZONE]}) as harness:
        state = json.loads(harness.module.state_json)
        assert state["scene"] == {"zones": [ZONE]}


@pytest.mark.virtual_time
async def test_the_scene_is_in_the_monitors_state() -> None:
    async with agents("agent") as (scene, _):
        place = Place(name="place")
        await scene.add(place)
        console = Console(scene.bridge.monitor.watch())
        await until(lambda: any(module["name"] == "place" for module in console.state.get("modules", ())))
        assert console.state["scene"] == {}
        place.report_state(scene_state(SceneView(goal=GoalView(x=1.0, y=2.0))))
        await until(lambda: console.state["scene"])
        assert console.state["scene"] == {
            "": {"zones": [], "waypoints": [], "goal": {"x": 1.0, "y": 2.0}, "path": [], "frame_id": "odom"}
        }
        await console.close()
