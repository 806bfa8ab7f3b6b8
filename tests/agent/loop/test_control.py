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
from tests.agent.loop.rig import FunctionModel, Line, Rig, asks, in_turn, says
from tests.agent.loop.skills import LineWorld
from tests.helpers import until


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_ten_calls_that_wait_all_go_on() -> None:
    world = LineWorld()
    batch = asks(*(("look", {"for_s": 0}) for _ in range(10)))
    async with world.rig(batch, says("done"), limits={"parallel_calls": 10}) as rig:

        def pause_at_the_answer(event: AgentEvent) -> None:
            if event.kind == "answer":
                rig.core.control.pause()

        rig.core.events.listen(pause_at_the_answer)
        mission = await rig.say("look")
        await asyncio.sleep(60)
        assert len(rig.core.control.waiting) == 10
        assert world.bridge.calls_ == {}
        assert rig.core.holding
        rig.core.control.resume()
        await asyncio.sleep(1)
        assert len(world.bridge.calls_) == 10
        rig.core.control.resume()
        await rig.over(mission)
        assert not rig.core.holding


@pytest.mark.virtual_time
async def test_a_sentence_that_takes_too_long_holds_nothing_up_whatever_fractions_its_time_has() -> None:
    async with LineWorld().rig() as rig:
        control, over = rig.core.control, asyncio.Event()
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
    async with LineWorld().rig() as rig:
        control = rig.core.control
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
    async with world.rig(asks(("look", {})), says("done"), says("more")) as rig:
        rig.core.control.pause("lunch")
        mission = await rig.say("look")
        await asyncio.sleep(60)
        assert rig.kinds() == ["pause", "mission_start"]
        rig.core.control.resume("it was good")
        assert rig.data("resume") == [{"was": "paused", "reason": "it was good"}]
        await asyncio.sleep(0.5)
        rig.core.control.pause()
        await asyncio.sleep(60)
        assert rig.core.loop.iteration == 1
        rig.core.control.resume()
        assert (await rig.over(mission)).reason == "completed"


@pytest.mark.feature("B4")
@pytest.mark.virtual_time
async def test_one_call_per_step_and_the_operator_sees_which() -> None:
    world = LineWorld()
    async with world.rig(asks(("move", {"by": 1}), ("move", {"by": 2})), says("done")) as rig:
        assert rig.core.control.step() is None
        mission = await rig.say("go")
        await asyncio.sleep(60)
        assert [(call.skill, call.arguments) for call in rig.core.control.waiting] == [("move", {"by": 1})]
        assert rig.data("step")[-1]["arguments"] == {"by": 1}
        assert " waits: `step` lets it go" in rig.data("note")[-1]["text"]
        assert world.log == []
        gone = rig.core.control.step()
        assert gone is not None
        assert gone.arguments == {"by": 1}
        await asyncio.sleep(60)
        assert world.log == ["move 1"]
        rig.core.control.pause()
        assert rig.core.control.step() is not None
        await asyncio.sleep(60)
        assert world.log == ["move 1", "move 2"]
        assert rig.core.control.mode is Mode.STEPPING
        assert (await rig.over(mission)).reason == "completed"


@pytest.mark.feature("B4")
@pytest.mark.virtual_time
async def test_a_step_for_a_call_that_was_seen_lets_no_other_one_go() -> None:
    """Two people press for the same call: the second press does not let the next one go, which neither has seen."""
    world = LineWorld()
    async with world.rig(asks(("move", {"by": 1}), ("move", {"by": 2})), says("done")) as rig:
        control = rig.core.control
        control.step_mode()
        mission = await rig.say("go")
        await asyncio.sleep(60)
        (seen,) = control.waiting
        assert rig.data("step")[-1]["waiting"] == seen.id
        assert control.step(seen.id) == seen
        await asyncio.sleep(60)
        (next_one,) = control.waiting
        control.pause()
        with pytest.raises(ConflictError, match="no other one was let go"):
            control.step(seen.id)
        await asyncio.sleep(60)
        assert (world.log, control.waiting, control.paused) == (["move 1"], (next_one,), True)
        assert control.step(next_one.id) == next_one
        assert (await rig.over(mission)).reason == "completed"


@pytest.mark.virtual_time
async def test_a_call_that_waits_is_shown_when_step_mode_begins() -> None:
    world = LineWorld()
    model = FunctionModel(in_turn(asks(("move", {"by": 1})), says("there")), lambda: 0.2)
    async with world.with_model(model) as rig:
        mission = await rig.say("go")
        await asyncio.sleep(0.1)
        rig.core.control.pause()
        await asyncio.sleep(1.0)
        assert rig.data("step") == []
        rig.core.control.step_mode()
        shown = [(data["skill"], data["arguments"]) for data in rig.data("step") if data["phase"] == "waits"]
        assert shown == [("move", {"by": 1})]
        rig.core.control.resume()
        await rig.over(mission)
        assert world.log == ["move 1"]


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_abort_cuts_the_models_stream() -> None:
    world = LineWorld()
    model = FunctionModel(lambda request: [*says("a long story")[:1], *asks(("move", {"by": 1}))], lambda: 100.0)
    async with world.with_model(model) as rig:
        mission = await rig.say("tell")
        await asyncio.sleep(150)
        assert model.streams == 1
        began = clock.monotonic()
        report = await rig.core.loop.abort("enough")
        assert clock.monotonic() == began
        assert model.streams == 0
        assert report.missions == (mission.id,)
        assert (mission.reason, mission.over) == ("aborted", True)
        assert rig.core.loop.state is LoopState.IDLE
        assert [answer["text"] for answer in rig.data("answer")] == ["a long story [aborted: enough]", "[noted]"]
        await asyncio.sleep(1000)
        assert world.bridge.calls_ == {}
        model._answer = lambda request: says("at your service")
        model._delay_s = lambda: 0.0
        assert (await rig.over(await rig.say("again"))).text == "at your service"


@pytest.mark.feature("B5", "B6")
@pytest.mark.virtual_time
async def test_an_abort_ends_the_calls_and_takes_back_newest_first_past_failures() -> None:
    world = LineWorld()
    calls = asks(
        ("move", {"by": 1}), ("drop", {}), ("move", {"by": 13}), ("look", {}), ("follow", {}), ("move", {"by": 2})
    )
    async with world.rig(calls, says("done"), says("more")) as rig:
        mission = await rig.say("go")
        await asyncio.sleep(3.5)
        assert world.log[-1] == "move 2"
        report = await rig.core.loop.abort(rollback=True)
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
        results = [data for data in rig.data("result") if data["tool_call_id"] == "t5"]
        assert "the operator has aborted the mission" in results[0]["text"]


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_call_that_does_not_end_is_named_and_the_agent_stays_paused() -> None:
    world = LineWorld()
    async with world.rig(asks(("deaf", {})), says("it works")) as rig:
        mission = await rig.say("go")
        await asyncio.sleep(5)
        began = clock.monotonic()
        report = await rig.core.loop.abort()
        assert clock.monotonic() - began == pytest.approx(2.0)
        assert report.unfinished == ("c0",)
        assert rig.core.holding
        assert mission.over
        world.released.set()


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_abort_is_not_held_up_by_a_queue_that_is_full() -> None:
    world = LineWorld()
    calls = asks(*[("follow", {})] * 4, ("hang", {}))
    async with world.rig(calls, queue_capacity=1) as rig:
        mission = await rig.say("go")
        await asyncio.sleep(1)
        world.released.set()
        await asyncio.sleep(1)  # four ends, and room for one of them
        began = clock.monotonic()
        report = await rig.core.loop.abort()
        assert clock.monotonic() - began < 0.1
        assert report.unfinished == ()
        assert mission.over
        ends = [data["call_id"] for data in rig.data("update")]
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
    async with world.rig(asks(("follow", {})), says("")) as rig:
        await rig.say("follow")
        await asyncio.sleep(0.5)
        await rig.core.loop.abort()
        await asyncio.sleep(5)
        (call,) = world.bridge.calls_.values()
        assert call.reason == "it was begun too late"
        assert world.log == ["follow ended"]
        assert rig.core.calls.known.open == ()


@pytest.mark.feature("B6")
@pytest.mark.virtual_time
async def test_undo_takes_back_the_newest_calls_once_and_only_between_turns() -> None:
    world = LineWorld()
    async with world.rig(asks(("move", {"by": 1}), ("move", {"by": 2}), ("look", {})), says("done")) as rig:
        mission = await rig.say("go")
        await asyncio.sleep(0.5)
        with pytest.raises(SkillError, match="the agent is executing: abort first"):
            await rig.core.loop.undo()
        await rig.over(mission)
        (newest,) = await rig.core.loop.undo()
        assert (newest.how, newest.arguments) == ("undone", {"by": 2})
        assert [undone.arguments for undone in await rig.core.loop.undo(5)] == [{"by": 1}]
        assert await rig.core.loop.undo(5) == []
        assert world.x == 0
        phases = [(data["phase"], data["skill"]) for data in rig.data("undo")]
        assert phases == [("start", "move"), ("end", "move")] * 2


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_abort_ends_an_undo() -> None:
    world = LineWorld()
    async with world.rig(asks(("move", {"by": 1}), ("move", {"by": 2})), says("done")) as rig:
        await rig.over(await rig.say("go"))
        undoing = asyncio.create_task(rig.core.loop.undo(2))
        await asyncio.sleep(0.5)
        assert rig.core.loop.state is LoopState.UNDOING
        await rig.core.loop.abort()
        assert [each.how for each in await undoing] == ["failed"]
        await asyncio.sleep(5)
        assert world.log == ["move 1", "move 2", "back 2"]
        assert world.x == 3
        assert not rig.core.calls.known.open


@pytest.mark.virtual_time
async def test_whoever_asks_a_loop_that_ends_is_answered() -> None:
    world = LineWorld()
    async with world.rig(asks(("deaf", {})), says("")) as rig:
        await rig.say("go")
        await asyncio.sleep(1)
        aborting = asyncio.create_task(rig.core.loop.abort())
        await asyncio.sleep(0.5)
        world.released.set()
    with pytest.raises(SkillError, match="the agent is stopping"):
        await aborting
    with pytest.raises(SkillError, match="the agent is stopping"):
        await rig.core.loop.abort()


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
    async with Rig(world.bridge, model, line=StubbornLine(world.bridge)) as rig:
        world.bridge.latency_s = lambda: 5.0
        await rig.say("follow")
        await until(lambda: rig.core.calls.starts.under_way)
        world.bridge.latency_s = lambda: 0.0
        report = await rig.core.loop.abort("enough")
        assert (rig.core.calls.starts.under_way, rig.core.calls.known.open, report.unfinished) == (False, (), ())
        assert world.log == ["follow ended"]
