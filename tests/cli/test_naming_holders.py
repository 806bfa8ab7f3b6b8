"""What a person is told while somebody holds the robot that a call is to move."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch
from dimos_streams.cli.bridge_client.calls.holds import naming_holders
from dimos_streams.operator.holding import holders_in
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import OfferedSkill, SkillGateway

pytestmark = pytest.mark.virtual_time


class Bridge:
    """A bridge of a run, or of a hub's robots, with agents of these names."""

    def __init__(self, *agents: str, robot: str | None = None) -> None:
        self._agents = agents
        self._robot = robot

    async def skills(self) -> list[OfferedSkill]:
        form = {"name": "say", "description": "", "parameters": {}, "available": True, "agent": True}
        return [OfferedSkill.model_validate({**form, "module": name, "robot": self._robot}) for name in self._agents]


def progress(text: str, *, call_id: str = "c1", caller: str = "cli", robot: str = "") -> ToolEvent:
    who = {"call_id": call_id, "module": "drive", "skill": "move", "caller": caller, "robot": robot}
    return ToolEvent.from_dict({"utime": 1, "seq": 1, "type": "progress", "text": text, "data": {}, **who})


async def told(bridge: Bridge, events: Sequence[ToolEvent], capsys: pytest.CaptureFixture[str]) -> list[str]:
    watch = EventWatch(lambda event: None)
    async with naming_holders(cast("SkillGateway", bridge), watch, "c1", " --port 7"):
        for event in events:
            watch.receive(event)
            await asyncio.sleep(0.1)
    return capsys.readouterr().err.splitlines()


async def test_each_holder_is_named_once_with_what_lets_the_robot_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["0.2 m to go", *["held by agent; 0.2 m to go"] * 3, "held by agent, dock, stop-robot; 0.2 m to go"]
    assert await told(Bridge("agent"), [progress(text) for text in texts], capsys) == [
        "held by the pause of agent 'agent': `dimos-streams resume --port 7` lets it go on",
        "held by 'dock', until that lets the robot move again",
        "held by an operator's stop of the robot: `dimos-streams release-robot --port 7` lets it move again",
    ]


async def test_of_several_agents_the_one_that_holds_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    held = progress("held by r1/agent; turning")
    resume = "`dimos-streams resume --agent r1/agent --port 7` lets it go on"
    assert await told(Bridge("r1/agent", "r2/agent"), [held], capsys) == [
        f"held by the pause of agent 'r1/agent': {resume}"
    ]
    held = progress("held by agent; turning", robot="r1")
    (line,) = await told(Bridge("agent", robot="r1"), [held], capsys)
    assert line.startswith("held by the pause of agent 'r1/agent'")


async def test_of_a_mission_the_calls_of_its_agent_count_and_those_of_others_do_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mission = replace(progress(""), module="agent", skill="say")
    others = progress("held by agent; 1 m to go", call_id="c2", caller="cron")
    assert await told(Bridge("agent"), [mission, others], capsys) == []
    own = replace(others, call_id="c3", caller="agent")
    assert len(await told(Bridge("agent"), [mission, own], capsys)) == 1


async def test_other_texts_name_no_holder() -> None:
    assert [holders_in(text) for text in ("", "1 m to go; slowly", "held by the arm", "held by a, b; c; d")] == [
        (),
        (),
        (),
        ("a", "b"),
    ]
