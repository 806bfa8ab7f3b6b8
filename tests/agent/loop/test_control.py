"""Pause, step, abort, undo, one by one; ``test_control_property`` has them all at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.errors import ConflictError, SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import Line
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_ten_calls_that_wait_all_go_on() -> None:
    world = LineWorld()
    batch = asks(*(("look", {"for_s": 0}) for _ in range(10)))
    async with world.agent(batch, says("done"), limits={"parallel_calls": 10}) as agent:

        def pause_at_the_answer(event: AgentEvent) -> None:
            if event.kind == "answer":
                agent.core.control.pause()

        agent.core.events.listen(pause_at_the_answer)
        mission = await agent.say("look")
        await asyncio.sleep(60)
        assert len(agent.core.control.waiting) == 10
        assert world.bridge.calls_ == {}
        assert agent.core.holding
        agent.core.control.resume()
        await asyncio.sleep(1)
        assert len(world.bridge.calls_) == 10
        agent.core.control.resume()
        await agent.over(mission)
        assert not agent.core.holding


@pytest.mark.virtual_time
async def test_a_sentence_that_takes_too_long_holds_nothing_up_whatever_fractions_its_time_has() -> None:
    async with LineWorld().agent() as agent:
        control, over = agent.core.control, asyncio.Event()
        control.changed.add(over.set)
        for _ in range(200):
            control.typing(0.1)
            assert not control.may_begin_turn()
            over.clear()
            await over.wait()
            assert control.may_begin_turn()


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_an_operator_who_goes_on_typing_is_not_answered_in_the_middle() -> None:
    async with LineWorld().agent() as agent:
        control = agent.core.control
        for _ in range(5):
            control.typing(1.0)
            await asyncio.sleep(0.6)
            assert not control.may_begin_turn()
        await asyncio.sleep(0.5)
        assert control.may_begin_turn()


@pytest.mark.feature("B3", "E4")
@pytest.mark.virtual_time
async def test_while_paused_no_turn_and_no_iteration_begins() -> None:
    world = LineWorld()
    async with world.agent(asks(("look", {})), says("done"), says("more")) as agent:
        agent.core.control.pause("lunch")
        mission = await agent.say("look")
        await asyncio.sleep(60)
        assert agent.kinds() == ["pause", "mission_start"]
        agent.core.control.resume("it was good")
        assert agent.data("resume") == [{"was": "paused", "reason": "it was good"}]
        await asyncio.sleep(0.5)
        agent.core.control.pause()
        await asyncio.sleep(60)
        assert agent.core.loop.iteration == 1
        agent.core.control.resume()
        assert (await agent.over(mission)).reason == "completed"


@pytest.mark.feature("B4")
@pytest.mark.virtual_time
async def test_one_call_per_step_and_the_operator_sees_which() -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1}), ("move", {"by": 2})), says("done")) as agent:
        assert agent.core.control.step() is None
        mission = await agent.say("go")
        await asyncio.sleep(60)
        assert [(call.skill, call.arguments) for call in agent.core.control.waiting] == [("move", {"by": 1})]
        assert agent.data("step")[-1]["arguments"] == {"by": 1}
        seen = agent.data("step")[-1]["waiting"]
        assert f"move(by=1) waits: `step {seen}` lets it go" in agent.data("note")[-1]["text"]
        assert world.log == []
        gone = agent.core.control.step()
        assert gone is not None
        assert gone.arguments == {"by": 1}
        await asyncio.sleep(60)
        assert world.log == ["move 1"]
        agent.core.control.pause()
        assert agent.core.control.step() is not None
        await asyncio.sleep(60)
        assert world.log == ["move 1", "move 2"]
        assert agent.core.control.mode is Mode.STEPPING
        assert (await agent.over(mission)).reason == "completed"


@pytest.mark.feature("B4")
@pytest.mark.virtual_time
async def test_a_step_for_a_call_that_was_seen_lets_no_other_one_go() -> None:
    """Two people press for the same call: the second press does not let the next one go, which neither has seen."""
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1}), ("move", {"by": 2})), says("done")) as agent:
        control = agent.core.control
        control.step_mode()
        mission = await agent.say("go")
        await asyncio.sleep(60)
        (seen,) = control.waiting
        assert agent.data("step")[-1]["waiting"] == seen.id
        assert control.step(seen.id) == seen
        await asyncio.sleep(60)
        (next_one,) = control.waiting
        control.pause()
        with pytest.raises(ConflictError, match=f"no call '{seen.id}' waits .* {next_one.id}"):
            control.step(seen.id)
        await asyncio.sleep(60)
        assert (world.log, control.waiting, control.paused) == (["move 1"], (next_one,), True)
        assert control.step(next_one.id) == next_one
        assert (await agent.over(mission)).reason == "completed"


@pytest.mark.virtual_time
async def test_a_call_that_waits_is_shown_when_step_mode_begins() -> None:
    world = LineWorld()
    model = FunctionModel(in_turn(asks(("move", {"by": 1})), says("there")), lambda: 0.2)
    async with world.with_model(model) as agent:
        mission = await agent.say("go")
        await asyncio.sleep(0.1)
        agent.core.control.pause()
        await asyncio.sleep(1.0)
        assert agent.data("step") == []
        agent.core.control.step_mode()
        shown = [(data["skill"], data["arguments"]) for data in agent.data("step") if data["phase"] == "waits"]
        assert shown == [("move", {"by": 1})]
        agent.core.control.resume()
        await agent.over(mission)
        assert world.log == ["move 1"]


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_abort_cuts_the_models_stream() -> None:
    world = LineWorld()
    model = FunctionModel(lambda request: [*says("a long story")[:1], *asks(("move", {"by": 1}))], lambda: 100.0)
    async with world.with_model(model) as agent:
        mission = await agent.say("tell")
        await asyncio.sleep(150)
        assert model.streams == 1
        began = clock.monotonic()
        report = await agent.core.loop.abort("enough")
        assert clock.monotonic() == began
        assert model.streams == 0
        assert report.missions == (mission.id,)
        assert (mission.reason, mission.over) == ("aborted", True)
        assert agent.core.loop.state is LoopState.IDLE
        assert [answer["text"] for answer in agent.data("answer")] == ["a long story [aborted: enough]", "[noted]"]
        await asyncio.sleep(1000)
        assert world.bridge.calls_ == {}
        model._answer = lambda request: says("at your service")
        model._delay_s = lambda: 0.0
        assert (await agent.over(await agent.say("again"))).text == "at your service"


@pytest.mark.feature("B5", "B6")
@pytest.mark.virtual_time
async def test_an_abort_ends_the_calls_and_takes_back_newest_first_past_failures() -> None:
    world = LineWorld()
    calls = asks(
        ("move", {"by": 1}), ("drop", {}), ("move", {"by": 13}), ("look", {}), ("follow", {}), ("move", {"by": 2})
    )
    async with world.agent(calls, says("done"), says("more")) as agent:
        mission = await agent.say("go")
        await asyncio.sleep(3.5)
        assert world.log[-1] == "move 2"
        report = await agent.core.loop.abort(rollback=True)
        # The move that ran and the pursuit have ended before anything is taken back.
        assert world.log[4:] == ["follow ended", "back 2", "back 13", "back 1"]
        assert [(undone.skill, undone.how) for undone in report.undone] == [
            *(("move", "undone"), ("follow", "impossible"), ("move", "failed")),
            *(("drop", "impossible"), ("move", "undone")),
        ]
        assert report.undone[2].text == "something is in the way"
        assert report.undone[3].text == "what it did can't be taken back"
        assert mission.over
        assert len(report.cancelled) == 2
        results = [data for data in agent.data("result") if data["tool_call_id"] == "t5"]
        assert "the operator has aborted the mission" in results[0]["text"]


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_call_that_does_not_end_is_named_and_the_agent_stays_paused() -> None:
    world = LineWorld()
    async with world.agent(asks(("deaf", {})), says("it works")) as agent:
        mission = await agent.say("go")
        await asyncio.sleep(5)
        began = clock.monotonic()
        report = await agent.core.loop.abort()
        assert clock.monotonic() - began == pytest.approx(2.0)
        assert report.unfinished == ("c0",)
        assert agent.core.holding
        assert mission.over
        world.released.set()


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_abort_is_not_held_up_by_a_queue_that_is_full() -> None:
    world = LineWorld()
    calls = asks(*[("follow", {})] * 4, ("hang", {}))
    async with world.agent(calls, queue_capacity=1) as agent:
        mission = await agent.say("go")
        await asyncio.sleep(1)
        world.released.set()
        await asyncio.sleep(1)  # four ends, and room for one of them
        began = clock.monotonic()
        report = await agent.core.loop.abort()
        assert clock.monotonic() - began < 0.1
        assert report.unfinished == ()
        assert mission.over
        ends = [data["call_id"] for data in agent.data("update")]
        assert ends == ["c0", "c1", "c2", "c3", "c4"]


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_call_whose_beginning_is_aborted_is_ended_if_it_begins_nevertheless() -> None:
    world = LineWorld()
    begin = world.bridge.call

    async def slow(*args: object, **options: object) -> str:
        """Like a request over HTTP, which goes on in its thread."""
        return await asyncio.shield(asyncio.ensure_future(late(*args, **options)))

    async def late(*args: object, **options: object) -> str:
        await asyncio.sleep(1)
        return await begin(*args, **options)  # type: ignore[arg-type]

    world.bridge.call = slow  # type: ignore[method-assign]
    async with world.agent(asks(("follow", {})), says("")) as agent:
        await agent.say("follow")
        await asyncio.sleep(0.5)
        await agent.core.loop.abort()
        await asyncio.sleep(5)
        (call,) = world.bridge.calls_.values()
        assert call.reason == "it was begun too late"
        assert world.log == ["follow ended"]
        assert agent.core.calls.known.open == ()


@pytest.mark.feature("B6")
@pytest.mark.virtual_time
async def test_undo_takes_back_the_newest_calls_once_and_only_between_turns() -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1}), ("move", {"by": 2}), ("look", {})), says("done")) as agent:
        mission = await agent.say("go")
        await asyncio.sleep(0.5)
        with pytest.raises(SkillError, match="the agent is executing: abort first"):
            await agent.core.loop.undo()
        await agent.over(mission)
        (newest,) = await agent.core.loop.undo()
        assert (newest.how, newest.arguments) == ("undone", {"by": 2})
        assert [undone.arguments for undone in await agent.core.loop.undo(5)] == [{"by": 1}]
        assert await agent.core.loop.undo(5) == []
        assert world.x == 0
        phases = [(data["phase"], data["skill"]) for data in agent.data("undo")]
        assert phases == [("start", "move"), ("end", "move")] * 2


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_abort_ends_an_undo() -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1}), ("move", {"by": 2})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        undoing = asyncio.create_task(agent.core.loop.undo(2))
        await asyncio.sleep(0.5)
        assert agent.core.loop.state is LoopState.UNDOING
        await agent.core.loop.abort()
        assert [each.how for each in await undoing] == ["failed"]
        await asyncio.sleep(5)
        assert world.log == ["move 1", "move 2", "back 2"]
        assert world.x == 3
        assert not agent.core.calls.known.open


@pytest.mark.virtual_time
async def test_whoever_asks_a_loop_that_ends_is_answered() -> None:
    world = LineWorld()
    async with world.agent(asks(("deaf", {})), says("")) as agent:
        await agent.say("go")
        await asyncio.sleep(1)
        aborting = asyncio.create_task(agent.core.loop.abort())
        await asyncio.sleep(0.5)
        world.released.set()
    with pytest.raises(SkillError, match="the agent is stopping"):
        await aborting
    with pytest.raises(SkillError, match="the agent is stopping"):
        await agent.core.loop.abort()


class StubbornLine(Line):
    """A link on which a call that is on its way to the bridge can't be called back."""

    async def call(self, skill: str, arguments: Mapping[str, Any], **options: Any) -> str:
        sent = asyncio.ensure_future(self.bridge.call(skill, arguments, **options))
        while not sent.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([sent])
        return sent.result()


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_abort_waits_for_a_call_that_is_about_to_begin_and_ends_it() -> None:
    world = LineWorld()
    model = FunctionModel(in_turn(asks(("follow", {}))))
    async with AgentInMemory(world.bridge, model, line=StubbornLine(world.bridge)) as agent:
        world.bridge.latency_s = lambda: 5.0
        await agent.say("follow")
        await until(lambda: agent.core.calls.starts.under_way)
        world.bridge.latency_s = lambda: 0.0
        report = await agent.core.loop.abort("enough")
        assert (agent.core.calls.starts.under_way, agent.core.calls.known.open, report.unfinished) == (False, (), ())
        assert world.log == ["follow ended"]
