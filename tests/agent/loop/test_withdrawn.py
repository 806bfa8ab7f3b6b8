"""Words that were withdrawn before a turn took them up are carried out by nobody; no model sees them as an order."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.models.offline import OfflineModel
from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    Message,
    ModelRequest,
    ToolCall,
    ToolCallDelta,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld
from tests.agent.stage import stage
from tests.helpers import run_virtual

ORDER, QUESTION = "drive forward 3 metres", "what do you see?"


def open_orders(request: ModelRequest) -> list[str]:
    """The input of an operator since the newest final answer."""
    found: list[str] = []
    for message in request.messages:
        if isinstance(message, AssistantMessage) and not message.tool_calls:
            found.clear()
        elif isinstance(message, UserMessage) and message.event is None:
            found.append(message.text)
    return found


async def heard(agent: AgentInMemory, text: str, *, now: bool = False) -> Mission:
    mission = agent.core.missions.begin(text, text)
    await agent.core.work.hear(OperatorInput(text, (mission,), now=now))
    return mission


@pytest.mark.feature("B9")
@pytest.mark.parametrize("way", ["cancelled", "now", "deadline", "aborted", "with others"])
@pytest.mark.virtual_time
async def test_no_model_sees_an_order_that_was_withdrawn_behind_a_pause(way: str, tmp_path: Path) -> None:
    model = FunctionModel(lambda request: says("a wall"))
    limits = {"deadline_s": 5} if way == "deadline" else {}
    async with LineWorld().with_model(model, record_dir=tmp_path, limits=limits) as agent:
        agent.core.control.pause()
        order = await heard(agent, ORDER, now=way == "now")
        if way == "aborted":
            await agent.core.loop.abort()
            agent.core.control.pause()
        elif way == "with others":  # no moment passes between the two
            other = await heard(agent, QUESTION)
            order.end("cancelled")
            agent.core.control.resume()
            await agent.over(other)
        elif way != "deadline":
            order.end("cancelled")
        await agent.over(order, 6)
        agent.core.control.resume()
        await agent.over(await heard(agent, "and now?"))
        assert [request for request in model.requests if ORDER in str(request.messages)] == []
        assert any(ORDER in entry.text for entry in agent.core.conversation.entries)  # people see it
    async with LineWorld().with_model(model, record_dir=tmp_path, limits=limits) as successor:
        await successor.over(await heard(successor, "who are you?"))
        assert open_orders(model.requests[-1]) == ["who are you?"]


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_an_order_that_was_withdrawn_in_a_turn_with_others_is_none_any_more() -> None:
    def answer(request: ModelRequest) -> Answer:
        return asks(("look", {})) if len(model.requests) == 1 else says("a wall")

    model = FunctionModel(answer)
    async with LineWorld().with_model(model) as agent:
        agent.core.control.pause()
        order, other = await heard(agent, ORDER), await heard(agent, QUESTION)
        agent.core.control.resume()
        await asyncio.sleep(0.5)
        order.end("cancelled")
        assert (await agent.over(other)).reason == "completed"
        assert [open_orders(request) for request in model.requests] == [[ORDER, QUESTION], [QUESTION]]


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_a_call_that_waits_when_an_order_is_withdrawn_is_asked_for_anew_or_not_at_all() -> None:
    world = LineWorld()

    def answer(request: ModelRequest) -> Answer:
        return asks(("move", {"by": 3})) if ORDER in open_orders(request) else says("a wall")

    model = FunctionModel(answer, lambda: 0.2)
    async with world.with_model(model) as agent:
        agent.core.control.pause()
        order, other = await heard(agent, ORDER), await heard(agent, QUESTION)
        agent.core.control.resume()
        await asyncio.sleep(0.1)
        agent.core.control.pause()  # the model answers all the same; the call waits
        await asyncio.sleep(2)
        order.end("cancelled")
        agent.core.control.resume()
        assert (await agent.over(other)).reason == "completed"
        assert world.log == []


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_input_that_was_withdrawn_answers_no_question() -> None:
    async with LineWorld().agent() as agent, agent.core.foreground.dialogue() as dialogue:
        listening = asyncio.ensure_future(dialogue.listen())
        await asyncio.sleep(0.1)
        order = await heard(agent, ORDER)
        order.end("cancelled")
        await heard(agent, "yes")
        assert await listening == "yes"


@pytest.mark.feature("B9")
def test_the_offline_model_goes_on_with_what_is_left_of_a_turn() -> None:
    called = AssistantMessage("", (ToolCall("call_1", "move", '{"distance_m": 1.0}'),))
    result = ToolResultMessage("call_1", "move", "Moved 1 m", False)
    seen: list[Message] = [UserMessage("turn left 90"), called, result]

    async def main() -> None:
        tools = tuple(ToolSchema(name, name, {}) for name in ("move", "turn"))
        deltas = [delta async for delta in OfflineModel().stream(ModelRequest(tuple(seen), tools))]
        assert [delta.name for delta in deltas if isinstance(delta, ToolCallDelta)] == ["turn"]

    asyncio.run(main())


@pytest.mark.feature("B9")
@pytest.mark.parametrize("now", [False, True])
@pytest.mark.virtual_time
async def test_nothing_moves_for_input_that_was_cancelled_behind_a_pause(now: bool) -> None:
    async with stage() as s:
        await s.harness.call("pause", caller="operator")
        order = await s.harness.call("say", caller="operator", text="move 0.4", now=now)
        await asyncio.sleep(0.1)
        order.cancel("the operator waits no longer")
        assert (await order.closed()).outcome == "cancelled"
        await s.harness.call("resume", caller="operator")
        await (await s.say("what do you see")).closed()
        assert s.skills.moves == []


@pytest.mark.slow
@pytest.mark.feature("B9")
def test_no_reply_reports_the_cancelling_of_others_input() -> None:
    """Whatever the timing: a turn that several missions share goes on for those that are left."""

    async def main(seed: int) -> None:
        chance = random.Random(seed)

        def answer(request: ModelRequest) -> Answer:
            return says("fine") if chance.random() < 0.5 else asks((chance.choice(("follow", "look")), {}))

        world = LineWorld()
        world.released.set()
        async with world.with_model(FunctionModel(answer, lambda: chance.choice((0.0, 0.05)))) as agent:
            first = await agent.say("first")
            for number in range(4):
                await asyncio.sleep(chance.choice((0, 0.01, 0.05, 0.3)))
                other = await heard(agent, f"other {number}")
                await asyncio.sleep(chance.choice((0, 0.01, 0.05, 0.3)))
                other.end("cancelled")
            await agent.over(first)
            replies = [entry.text for entry in agent.core.conversation.entries if first.id in entry.missions]
            assert (first.reason, "[cancelled" in str(replies)) == ("completed", False), seed

    for seed in range(60):
        run_virtual(main(seed))
