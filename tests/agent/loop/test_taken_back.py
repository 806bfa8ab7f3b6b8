"""The model is shown what the operator has aborted and taken back, and why; also after a restart."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.models.protocol import AssistantMessage, Message, TextDelta, ToolResultMessage, UserMessage
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.loop.function_model import FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import until


def data(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage) and message.event is not None]


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_the_model_is_shown_undo_and_rollback_and_keeps_it_over_a_restart(tmp_path: Path) -> None:
    world = LineWorld()
    answers = (asks(("move", {"by": 1}), ("move", {"by": 13}), ("drop", {})), says("Done."), says("Hm."))
    model = FunctionModel(in_turn(*answers))
    async with world.with_model(model, tmp_path) as agent:
        await agent.over(await agent.say("go"))
        await agent.core.loop.undo(2)
        await agent.core.loop.abort("enough", rollback=True)  # nothing is left to be aborted
        await agent.core.loop.undo(1)
        await agent.over(await agent.say("and now?"))
        seen = model.requests[-1].messages
        assert data(seen) == [
            "The operator wanted a call taken back. drop() (call c2) can't be undone: "
            "what it did can't be taken back",
            "The operator wanted a call taken back. move(by=13) (call c1) could not be undone: "
            "something is in the way",
            "The operator took a call back. move(by=1) (call c0) is undone: done",
        ]
        assert seen[-2].text == "[noted]"
        assert seen[-1].text == "and now?"
        before = agent.core.conversation.messages()
    async with world.with_model(FunctionModel(in_turn()), tmp_path) as agent:
        assert agent.core.conversation.messages() == before


@pytest.mark.feature("B3", "B5")
@pytest.mark.virtual_time
async def test_a_stop_drops_a_rollback_that_was_to_begin() -> None:
    """Who says that everything is to stop does not want the robot to go back."""
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1}), ("follow", {})), says("Hm.")) as agent:
        await agent.say("go")
        await until(lambda: len(agent.core.calls.known.open) == 1 and world.x == 1)
        rollback = agent.core.loop.begin_abort(rollback=True)
        stop = agent.core.loop.begin_abort("stop", others=partial(agent.core.oversight.others.end, "stop"))
        report = await stop.done
        assert stop is rollback
        assert report.undone == ()
        assert "back 1" not in world.log
        assert (await agent.core.loop.undo(2))[-1].how == "undone"


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_rollback_and_its_reason(tmp_path: Path) -> None:
    world = LineWorld()
    model = FunctionModel(in_turn(asks(("move", {"by": 1})), asks(("follow", {})), asks(("hang", {})), says("Hm.")))
    async with world.with_model(model, tmp_path) as agent:
        await agent.say("go")
        await until(lambda: len(agent.core.calls.known.open) == 2)
        await agent.core.loop.abort("mind the cat", rollback=True)
        await agent.over(await agent.say("what was that?"))
        seen = model.requests[-1].messages
        shown = data(seen)
        assert any("move(by=1) (call c0) is undone" in text for text in shown)
        assert shown[-1] == (
            "The operator has aborted everything: mind the cat. "
            "Do not take it up again unless you are asked to.\n"
            "Calls that were ended: c1, c2."
        )
        results = [message.text for message in seen if isinstance(message, ToolResultMessage)]
        assert "mind the cat" in results[-1]
        before = agent.core.conversation.messages()
    async with world.with_model(FunctionModel(in_turn()), tmp_path) as agent:
        assert agent.core.conversation.messages() == before


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_the_reason_is_not_lost_when_an_abort_cuts_an_answer() -> None:
    world = LineWorld()
    model = FunctionModel(in_turn([TextDelta("I drive "), *says("on.")], says("Hm.")), delay_s=lambda: 1.0)
    async with world.with_model(model) as agent:
        mission = await agent.say("go")
        await asyncio.sleep(1.5)
        await agent.core.loop.abort("mind the cat")
        assert mission.why == "mind the cat"
        await agent.over(await agent.say("what was that?"))
        seen = model.requests[-1].messages
        answers = [message.text for message in seen if isinstance(message, AssistantMessage)]
        assert answers[0] == "I drive  [aborted: mind the cat]"


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_rollback_interrupts_a_pause_for_as_long_as_it_takes() -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1})), asks(("follow", {}))) as agent:
        await agent.say("go")
        await until(lambda: [call.skill for call in agent.core.calls.known.open] == ["follow"])
        agent.core.control.pause()
        paused: list[bool] = []

        def hear(event: AgentEvent) -> None:
            if event.kind == "undo":
                paused.append(agent.core.control.paused)

        agent.core.events.listen(hear)
        report = await agent.core.loop.abort(rollback=True)
        assert [undone.how for undone in report.undone] == ["impossible", "undone"]
        assert paused == [False] * 4
        assert report.stays_paused
        assert agent.core.control.paused


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_undo_interrupts_a_pause_for_as_long_as_it_takes() -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        agent.core.control.pause()
        undoing = asyncio.ensure_future(agent.core.loop.undo())
        await until(lambda: world.log[-1] == "back 1")
        assert not agent.core.control.paused
        began = clock.monotonic()
        assert [undone.how for undone in await undoing] == ["undone"]
        assert clock.monotonic() - began < 2.0
        assert agent.core.control.paused


@pytest.mark.feature("B5", "B6")
@pytest.mark.virtual_time
async def test_an_undo_in_a_pause_is_refused_while_something_else_would_go_on() -> None:
    world = LineWorld()
    async with world.agent(asks(("follow", {}), ("move", {"by": 1})), says("done")) as agent:
        await agent.say("go")
        await until(lambda: agent.core.loop.state is LoopState.IDLE and agent.core.calls.known.open)
        agent.core.control.pause()
        began = clock.monotonic()
        with pytest.raises(SkillError, match=r"follow \(call c0\) would go on as well; `resume` first"):
            await agent.core.loop.undo(1)
        assert clock.monotonic() == began
        assert agent.core.control.paused
        # It may be taken back together with what would go on.
        assert [undone.how for undone in await agent.core.loop.undo(2)] == ["undone", "impossible"]
        assert world.log[-2:] == ["follow ended", "back 1"]


@pytest.mark.feature("B5")
@pytest.mark.parametrize("call", [("slow", {}), ("note", {"n": 0})], ids=["motion", "no motion"])
@pytest.mark.virtual_time
async def test_time_stands_still_for_an_undo_that_is_paused(call: tuple[str, dict[str, Any]]) -> None:
    world = LineWorld()
    async with world.agent(asks(call), says("done")) as agent:
        await agent.over(await agent.say("go"))
        undoing = asyncio.ensure_future(agent.core.loop.undo())
        await asyncio.sleep(1)
        agent.core.control.pause()
        await asyncio.sleep(300)
        assert not undoing.done()
        agent.core.control.resume()
        world.released.set()
        assert [undone.how for undone in await undoing] == ["undone"]


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_rollback_beside_what_may_still_run_moves_nothing_and_does_not_wait() -> None:
    world = LineWorld()
    async with world.agent(asks(("move", {"by": 1}), ("deaf", {})), says("done")) as agent:
        await agent.say("go")
        await until(lambda: [call.skill for call in agent.core.calls.known.open] == ["deaf"])
        began = clock.monotonic()
        report = await agent.core.loop.abort(rollback=True)
        assert [(undone.skill, undone.how) for undone in report.undone][-1] == ("move", "failed")
        assert report.undone[-1].text == "it needs motion, and the robot is held still"
        assert clock.monotonic() - began < 2 * agent.core.model.limits.abort_bound_s
        world.released.set()


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_motion_beside_an_undo_that_was_given_up_fails_at_once_and_the_rest_goes_on() -> None:
    world = LineWorld()
    async with world.agent(asks(("note", {"n": 1}), ("move", {"by": 1}), ("knot", {})), says("done")) as agent:
        await agent.over(await agent.say("go"))
        async with asyncio.timeout(agent.core.model.limits.undo_timeout_s + 10):
            undone = await agent.core.loop.undo(3)
        assert [(each.skill, each.how) for each in undone] == [
            ("knot", "failed"),
            ("move", "failed"),
            ("note", "undone"),
        ]
        assert undone[1].text == "it needs motion, and the robot is held still"
        assert agent.core.control.paused
        world.released.set()
