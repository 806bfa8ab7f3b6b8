"""The model gets each update once, in order, and when it can act on it."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import threading

import pytest

from dimos_streams.agent.context.conversation import SILENT
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.models.protocol import AssistantMessage, UserMessage
from tests.agent.loop.fake_bridge import FakeCall, offered
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.agent.stage import stage
from tests.helpers import until


@pytest.mark.feature("E4")
@pytest.mark.virtual_time
async def test_what_comes_while_the_operator_types_waits_for_the_input() -> None:
    world = LineWorld()
    async with world.agent(asks(("follow", {})), says("I follow"), says("fine"), says("later")) as agent:
        await agent.say("follow")
        await asyncio.sleep(1)
        agent.core.control.typing(10)
        world.released.set()
        await asyncio.sleep(5)
        assert len(agent.model.requests) == 2
        agent.core.control.typed()
        await agent.say("what now?")
        await until(lambda: agent.data("done"))
        texts = [m.text for m in agent.model.requests[2].messages if isinstance(m, UserMessage)]
        assert texts[1] == 'done\nresult: "she has left"'
        assert texts[2] == "what now?"
        # A sentence that never ends holds nothing for ever.
        agent.core.control.typing(10)
        await agent.over(await agent.say("and now?"), 11)


@pytest.mark.virtual_time
async def test_progress_that_waits_behind_the_turn_of_its_calls_end_is_not_told_after_it() -> None:
    """Nothing would ever take its place: people would see it for ever, and the agent keep one for each call."""

    async def go(call: FakeCall) -> str:
        call.send("progress", "half of the way")
        await asyncio.sleep(1)
        return "there"

    world = LineWorld()
    world.bridge.bodies["go"] = offered("go"), go
    async with world.agent(asks(("go", {})), says("done")) as agent:
        await agent.over(await agent.say("go there"))
        await until(lambda: not len(agent.core.queue))
        assert [entry.role for entry in agent.core.conversation.entries] == [
            "operator",
            "assistant",
            "tool",
            "assistant",
        ]


@pytest.mark.feature("E4")
@pytest.mark.virtual_time
async def test_two_results_that_come_while_paused_are_one_turn() -> None:
    world = LineWorld()
    async with world.agent(asks(("follow", {}), ("follow", {})), says("I follow"), says("both")) as agent:
        mission = await agent.say("follow")
        await asyncio.sleep(1)
        agent.core.control.pause()
        world.released.set()
        await asyncio.sleep(60)
        assert len(agent.model.requests) == 2
        agent.core.control.resume()
        await agent.over(mission)
        assert agent.kinds("content", "usage")[-6:] == [
            "update",
            "update",
            "iteration_start",
            "answer",
            "stop",
            "done",
        ]


@pytest.mark.feature("E4")
@pytest.mark.virtual_time
async def test_a_turn_of_two_missions_goes_on_when_one_of_them_is_cancelled() -> None:
    world = LineWorld()
    answers = in_turn(asks(("follow", {})), says("one"), asks(("follow", {})), says("two"), says("both are over"))
    async with world.with_model(FunctionModel(answers, lambda: 1.0)) as agent:
        missions = [await agent.say("follow ann")]
        await until(lambda: len(agent.data("stop")) == 1)
        missions.append(await agent.say("follow bob"))
        await until(lambda: len(agent.data("stop")) == 2)
        agent.core.control.pause()
        world.released.set()
        await asyncio.sleep(1)
        agent.core.control.resume()
        await asyncio.sleep(0.5)
        assert agent.core.loop.iteration == 1, "the model is being asked what to make of both"
        missions[0].end("cancelled")
        await agent.over(missions[1])
        assert (missions[0].reason, missions[1].reason) == ("cancelled", "completed")
        assert missions[1].text == "both are over"


@pytest.mark.feature("E5")
@pytest.mark.virtual_time
async def test_nothing_is_delivered_twice_and_an_empty_answer_is_an_answer() -> None:
    world = LineWorld()
    chatty = 20

    async def chat(call: FakeCall) -> str:
        for n in range(chatty):
            call.send("update", f"step <{n}>")
            await asyncio.sleep(0.3)
        return "end"

    world.bridge.bodies["chat"] = (offered("chat"), chat)
    model = FunctionModel(in_turn(asks(("chat", {}))), lambda: 0.5)  # and then it has nothing to say
    async with world.with_model(model) as agent:
        mission = await agent.over(await agent.say("chat"))
        assert (mission.reason, mission.text) == ("completed", "")
        assert len(model.requests) > 3
        newest = model.requests[-1].messages
        shown = "\n".join(message.text for message in newest)
        assert [shown.count(f"step <{n}>") for n in range(chatty)] == [1] * chatty
        assert shown.count("end") == 1
        # An answer that said nothing is an answer, also for the model: what it answers is over.
        answers = [data for data in agent.data("answer") if not data["text"] and not data["tool_calls"]]
        assert len(answers) == len(model.requests) - 1
        final = [
            message.text for message in newest if isinstance(message, AssistantMessage) and not message.tool_calls
        ]
        assert final == [SILENT] * (len(answers) - 1)
        # What was shown before is shown again only as it was: each request begins as the one before it ended.
        for before, after in itertools.pairwise(model.requests):
            assert after.messages[: len(before.messages)] == before.messages


@pytest.mark.feature("E9")
@pytest.mark.virtual_time
async def test_errors_reach_the_model_as_they_are_meant_to() -> None:
    world = LineWorld()

    async def bug(call: FakeCall) -> str:
        return ""

    world.bridge.bodies["bug"] = (offered("bug"), bug)
    begin = world.bridge.call

    async def broken(skill: str, *args: object, **options: object) -> str:
        if skill == "bug":
            raise ZeroDivisionError("secret detail")
        return await begin(skill, *args, **options)  # type: ignore[arg-type]

    world.bridge.call = broken  # type: ignore[method-assign]
    calls = asks(("fail", {"n": 7}), ("bug", {}), ("lok", {}), ("move_back", {}))
    async with world.agent(calls, says("sorry")) as agent:
        await agent.over(await agent.say("go"))
        texts = [data["text"] for data in agent.data("result")]
        assert texts[0] == "no: 7"
        assert texts[1].startswith("internal error agent-1-t1")
        assert texts[1].endswith(": its traceback is on standard error")
        assert "secret detail" not in texts[1]
        assert "did you mean 'look'?" in texts[2]
        assert "no skill is called 'move_back'" in texts[3]


@pytest.mark.feature("E10")
@pytest.mark.parametrize("moment_s", [0.0, 0.5, 1.5, 3.0, 3.9])
@pytest.mark.virtual_time
async def test_nothing_is_left_of_an_agent_that_is_stopped(moment_s: float) -> None:
    before = asyncio.all_tasks()
    world = LineWorld()
    calls = asks(("look", {}), ("look", {}), ("follow", {}), ("move", {"by": 1}))
    async with world.agent(calls, asks(("hang", {})), says("")) as agent:
        agent.model._delay_s = lambda: 0.1
        await agent.say("go")
        agent.core.control.typing(100)
        agent.core.control.typed()
        await asyncio.sleep(moment_s)
    assert agent.core.loop.state is LoopState.CLOSED
    assert agent.model.streams == 0
    assert asyncio.all_tasks() == before


@pytest.mark.feature("E10")
@pytest.mark.virtual_time
async def test_nothing_is_left_of_a_whole_stage() -> None:
    before = asyncio.all_tasks()
    async with stage() as s:
        await s.say("follow the person in red")
        await s.until("tool", "Following")
        report = await s.harness.call("report", caller="monitor")
        await until(lambda: report.events)
        assert len(asyncio.all_tasks()) > 5
    assert asyncio.all_tasks() == before


def held() -> tuple[set[asyncio.Task[object]], set[str], int]:
    """Tasks, threads (the loop's own pool apart), open files and sockets, of which those of tests before are gone."""
    gc.collect()
    threads = {thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}
    return asyncio.all_tasks(), threads, len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
@pytest.mark.feature("E10")
def test_nothing_is_left_of_a_run_over_http() -> None:
    async def main() -> None:
        before = held()
        async with stage(http=True) as s:
            await s.say("follow the person in red")
            await s.until("tool", "Following")
            during = held()
            assert len(during[0]) > len(before[0])
            assert during[1] - before[1]
            assert during[2] > before[2]
        after = held()
        assert after[0] <= before[0]
        assert after[1] <= before[1]
        assert after[2] <= before[2]

    asyncio.run(main())
