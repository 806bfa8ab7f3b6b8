"""The monitor and the real agent: its traffic fits the schema, its skills are what the commands call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest
from websockets.asyncio.client import connect

from dimos_streams.agent.module import Agent
from dimos_streams.bridge.monitor.monitor import LINGER_S
from dimos_streams.operator.messages.commands import AgentCommand
from dimos_streams.skill import skills_of
from tests.agent.stage import calling, script, stage
from tests.bridge.monitor.test_socket import Socket
from tests.bridge.monitor.toy_agent import ToyAgent
from tests.bridge.monitor.watching_client import Console
from tests.helpers import until


@pytest.mark.parametrize("agent", [Agent, ToyAgent])
def test_commands_are_calls_of_the_agents_skills(agent: type[Any]) -> None:
    offered = skills_of(agent)
    for command in AgentCommand.__args__:
        name = command.model_fields["command"].annotation.__args__[0]
        own = set(command.model_fields) - {"command", "id", "agent"}
        assert own == set(offered[name].parameters.schema()["properties"]), name


@pytest.mark.slow
@pytest.mark.feature("C4", "C6")
def test_a_mission_under_an_operators_control(tmp_path: Path) -> None:
    async def scenario() -> None:
        turns = script(tmp_path / "turns.json", calling("follow_person", description="ann"), {"text": "I follow."})
        config = {**turns, "approval": {"rules": [{"skill": "follow_person"}]}}
        async with stage(config, http=True) as made:
            url = f"{made.bridge.url.replace('http', 'ws')}/monitor"
            async with connect(url) as connection:
                console = Socket(connection)
                await until(lambda: console.agent("agent"))
                said = await console.ask(command="say", text="follow ann")
                assert said["outcome"] is None
                await until(lambda: console.agent("agent")["approvals"])
                (approval,) = console.agent("agent")["approvals"]
                assert (approval["skill"], approval["arguments"]) == (
                    "follow_person",
                    {"description": "ann", "timeout_s": 120.0},
                )
                decided = await console.ask(
                    command="decide", approval=approval["id"], decision="approve", arguments={"description": "bob"}
                )
                assert decided["type"] == "reply", decided["text"]
                await until(lambda: "base" in console.state["leases"])
                following = next(call for call in console.state["calls"] if call["skill"] == "follow_person")
                assert following["arguments"] == {"description": "bob", "timeout_s": 120.0}
                assert (await console.ask(command="pause", reason="look"))["type"] == "reply"
                await until(lambda: console.agent("agent")["mode"] == "paused")
                assert (await console.ask(command="resume"))["type"] == "reply"
                assert (await console.ask(command="step", mode="on"))["type"] == "reply"
                await until(lambda: console.agent("agent")["mode"] == "stepping")
                assert (await console.ask(command="step", mode="off"))["type"] == "reply"
                off = await console.ask(command="set_skill", skill="move", enabled=False)
                assert off["type"] == "reply", off["text"]
                await until(lambda: console.agent("agent")["disabled_skills"] == ["move"])
                aborted = await console.ask(command="abort", reason="enough")
                assert aborted["type"] == "reply", aborted["text"]
                await until(lambda: not console.state["calls"] and not console.agent("agent")["missions"])
                kinds = [message["event"]["kind"] for message in console.of("event")]
                assert {"iteration_start", "call_run", "pause", "resume", "abort"} <= set(kinds)
                numbers = [message["event"]["number"] for message in console.of("event")]
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
                await console.close()

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.feature("C7")
@pytest.mark.parametrize("policy", ["continue", "hold", "abort"])
@pytest.mark.virtual_time
async def test_what_an_agent_does_when_the_last_console_is_gone(policy: Literal["continue", "hold", "abort"]) -> None:
    async with stage({"approval": {"on_console_loss": policy}}) as made:
        console = Console(made.bridge.monitor.watch())
        await until(lambda: console.agent("agent").get("watched"))
        await made.say("follow the person in red")
        await until(lambda: len(console.agent("agent")["calls"]) == 1)
        assert console.agent("agent")["on_console_loss"] == policy
        await console.close()
        await asyncio.sleep(LINGER_S + 5)
        again = Console(made.bridge.monitor.watch())
        await until(lambda: again.agent("agent"))
        assert again.agent("agent")["mode"] == ("paused" if policy == "hold" else "running")
        assert len(again.agent("agent")["calls"]) == (0 if policy == "abort" else 1)
        await again.close()
