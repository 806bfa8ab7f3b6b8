"""Dialogues that nothing interrupts."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.cli.terminal.approval_text import note_for_operators
from dimos_streams.operator.known_names import ANSWER
from tests.agent.policies.brain import Brain
from tests.agent.policies.robot_stage import robot_stage
from tests.agent.stage import Stage
from tests.helpers import until


async def said_to(made: Stage, text: str) -> dict[str, str]:
    result: dict[str, str] = await (await made.say(text)).result()
    return result


@pytest.mark.slow
@pytest.mark.feature("E7")
@pytest.mark.virtual_time
async def test_updates_wait_while_the_foreground_is_held_and_then_come_together() -> None:
    brain = Brain([("follow", {"who": "Ann"}), ("follow", {"who": "Bob"})], "following", "both are gone")
    async with robot_stage(brain) as (made, robot):
        mission = await made.say("go")
        await made.until("assistant", "following")
        async with made.agent.foreground() as dialogue:
            robot.done.set()
            await asyncio.sleep(30)
            assert len(brain.requests) == 2
            early = await made.say("hello?")
            await asyncio.sleep(1)
            asking = asyncio.create_task(dialogue.ask("Left or right?"))
            await asyncio.sleep(0)
            answer = await made.say("left")
            assert await asking == "left"
            await asyncio.sleep(30)
            assert len(brain.requests) == 2
            assert not answer.texts("close")
        for said in (early, answer):
            assert (await said.result())["reason"] == "answered"
        assert (await mission.result())["text"] == "both are gone"
        assert len(brain.requests) == 3
        update = [message.text for message in brain.requests[2].messages][-2:]
        assert "Ann is gone" in update[0]
        assert "Bob is gone" in update[1]
        assert not any("left" in message.text for message in brain.requests[2].messages)


@pytest.mark.slow
@pytest.mark.feature("E7")
@pytest.mark.virtual_time
async def test_the_model_asks_and_the_next_input_answers() -> None:
    brain = Brain(
        [("follow", {"who": "Ann"})],
        [("elicit", {"question": "Which room?"})],
        "to the kitchen then",
        "Ann is gone",
    )
    async with robot_stage(brain) as (made, robot):
        mission = await made.say("go")
        await until(lambda: made.agent.core.foreground.busy)
        assert "Which room?" in mission.texts("update")[-1]
        robot.done.set()
        await asyncio.sleep(30)
        assert len(brain.requests) == 2
        assert (await said_to(made, "the kitchen"))["reason"] == "answered"
        assert (await mission.result())["text"] == "Ann is gone"
        assert made.entries("tool")[-1].text == "The operator says: the kitchen"
        assert len(brain.requests) == 4


@pytest.mark.feature("E7")
@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.virtual_time
async def test_input_that_answers_a_question_is_not_said_to_wait(paused: bool) -> None:
    brain = Brain([("elicit", {"question": "Which room?"})], "to the kitchen then")
    async with robot_stage(brain) as (made, _):
        await made.say("go")
        await until(lambda: made.agent.core.foreground.listening)
        if paused:
            made.agent.core.control.pause()
        said = await made.say("the kitchen")
        assert (await said.result())["reason"] == "answered"
        assert not any("waiting" in text for text in said.texts("update"))


@pytest.mark.virtual_time
async def test_nobody_answers_and_input_that_nobody_heard_goes_to_the_agent() -> None:
    brain = Brain([("elicit", {"question": "Well?", "timeout_s": 5})], "then not", "hello")
    async with robot_stage(brain) as (made, _):
        assert (await said_to(made, "go"))["text"] == "then not"
        assert "did not answer within 5 s" in made.entries("tool")[-1].text
        async with made.agent.foreground():
            unheard = await made.say("hi")
            await asyncio.sleep(1)
            assert len(brain.requests) == 2
        assert (await unheard.result())["text"] == "hello"


@pytest.mark.feature("E7")
@pytest.mark.virtual_time
@pytest.mark.parametrize("question", ["Well?", "Well? " * 2000])
async def test_who_reads_a_question_reads_how_to_answer_it(question: str) -> None:
    brain = Brain([("elicit", {"question": question})], "well, then")
    async with robot_stage(brain) as (made, _):
        mission = await made.say("go")
        await until(lambda: made.agent.core.foreground.listening)
        shown = note_for_operators(mission.events[-1])
        assert shown.startswith("Well?")
        assert shown.endswith(ANSWER)
        await said_to(made, "yes")
        assert (await mission.result())["text"] == "well, then"
        assert not note_for_operators(mission.events[-1])


@pytest.mark.virtual_time
async def test_one_dialogue_after_the_other_and_abort_ends_one() -> None:
    brain = Brain([("elicit", {"question": "one"})], "x")
    async with robot_stage(brain) as (made, _):
        mission = await made.say("go")
        await until(lambda: made.agent.core.foreground.busy)
        held = made.agent.foreground()
        second = asyncio.create_task(held.__aenter__())
        await asyncio.sleep(1)
        assert not second.done()
        await (await made.harness.call("abort", caller="operator")).result()
        assert (await mission.closed()).data["result"]["reason"] == "aborted"
        await second
        assert made.agent.core.foreground.busy
        await held.__aexit__(None, None, None)
        assert not made.agent.core.foreground.busy
