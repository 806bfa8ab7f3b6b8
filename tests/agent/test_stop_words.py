"""Words that are a stop, and words that can't wait: they act at once, whatever the agent does."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.agent.control.stop_words import StopWords, StopWordSettings
from dimos_streams.agent.models.protocol import ModelRequest
from tests.agent.policies.brain import Answer, Brain
from tests.agent.policies.robot_stage import robot_stage
from tests.agent.stage import Stage
from tests.helpers import until

SOON_S = 0.3


@pytest.mark.feature("B5")
@pytest.mark.parametrize(
    "words",
    [
        *("stop", "Stop!", "STOP  now.", "halt", "stop, stop, STOP!!!", "robot, stop", "Robot1: stop please"),
        *(
            "please stop everything",
            "stop the robot",
            "freeze!",
            "don't move",
            "agent: cancel",
            "\uff53\uff54\uff4f\uff50",
            "no, stop!",
        ),
        *(
            "ok stop",
            "stop right there",
            "stop!!!1",
            "STOP!1!11",
            "st\u00adop",
            "\u200bstop\u2060",
            "st\0op",
            "\u202estop",
        ),
        *("stop " * 99, "stop " * 5000, f"{'no ' * 300}stop{'!1' * 300}"),
    ],
)
def test_what_is_a_stop(words: str) -> None:
    assert StopWords(StopWordSettings()).match(words, ["robot1", "agent"])


@pytest.mark.parametrize(
    "words",
    [
        *(
            "stop at the door and wait",
            "don't stop",
            "stop following",
            "go to the bus stop",
            "unstoppable",
            "now",
            "",
        ),
        *(
            "please",
            "robot2: stop",
            "stop when you see a person",
            "move 1 and stop",
            "how do I stop you?",
            "stop turning",
            "stop following me",
            "1",
            "ok",
            f"{'stop ' * 5000}when you see a person",
        ),
    ],
)
def test_what_is_none(words: str) -> None:
    assert not StopWords(StopWordSettings()).match(words, ["robot1", "agent"])


def test_other_languages_and_words_of_ones_own() -> None:
    german = StopWords(StopWordSettings(languages=("de",), words=("Feierabend", "Hör auf!")))
    assert all(german.match(words) for words in ("Halt!", "Bitte sofort anhalten", "feierabend", "hör auf", "stop"))
    assert not german.match("freeze")
    assert StopWords(StopWordSettings(languages=("en", "fr"))).match("Arrête-toi, s'il te plaît")
    assert not StopWords(StopWordSettings(languages=())).match("stop")
    with pytest.raises(ValidationError, match=r"'\?!' has neither letters nor digits"):
        StopWordSettings(words=("?!",))
    with pytest.raises(ValidationError, match="'en', 'de', 'fr' or 'es'"):
        StopWordSettings(languages=("tlh",))  # type: ignore[arg-type]


async def for_ever(request: ModelRequest) -> str:
    await asyncio.sleep(100_000)
    return "at last"


async def stops_soon(made: Stage, words: str = "stop!") -> str:
    """Say a stop, and what is said to it; at once no model is asked, no call runs, and nothing is in the air."""
    began = clock.monotonic()
    closed = await (await made.say(words)).closed()
    assert clock.monotonic() - began < SOON_S
    core = made.agent.core
    assert not core.calls.known.open
    assert not core.loop.missions
    assert core.loop.state == "idle"
    assert "the robot was NOT held: no velocity gate was heard" in closed.text  # there is none on this stage
    assert closed.outcome == "failed"
    return closed.text


def test_words_of_ones_own_may_overlap_and_are_looked_at_in_linear_time() -> None:
    words = StopWords(StopWordSettings(words=("stop stop", "stop stop stop", "code 112")))
    assert words.match("stop " * 2000)
    assert not words.match(f"{'stop ' * 2000} later")
    assert words.match("code 112!")
    assert not words.match("112")


def test_words_of_ones_own_may_consist_of_words_that_stand_around_a_stop_and_be_written_in_any_way() -> None:
    words = StopWords(StopWordSettings(words=("no no", "Schluß")))
    assert all(words.match(text) for text in ("no no", "No, no, no!", "ok, no no now", "SCHLUSS", "schluss!"))
    assert not words.match("no")


@pytest.mark.slow
@pytest.mark.feature("B5")
@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        ([[("follow", {"who": "Ann"})], for_ever], 1),
        ([for_ever], 0),
        ([[("follow", {"who": "Ann"}), *[("spin", {})] * 8]], 2),
    ],
    ids=["one turn", "endless reasoning", "eight calls of one answer"],
)
@pytest.mark.virtual_time
async def test_a_stop_acts_past_the_queue(answers: list[Answer], calls: int) -> None:
    brain = Brain(*answers)
    async with robot_stage(brain) as (made, _):
        mission = await made.say("go")
        await until(lambda: len(brain.requests) == len(answers) and len(made.agent.core.calls.known.open) == calls)
        asked = len(brain.requests)
        waiting = await made.say("and then?")
        text = await stops_soon(made)
        assert f"{calls} call" in text or not calls
        assert "2 missions ended" in text
        for said in (mission, waiting):
            assert (await said.closed()).data["result"]["reason"] == "aborted"
        await asyncio.sleep(100)
        assert len(brain.requests) == asked
        assert not await made.bridge.broker.calls(open_only=True)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_stop_says_how_many_calls_it_has_ended() -> None:
    brain = Brain([("follow", {"who": "Ann"}), ("follow", {"who": "Bob"})], "both")
    async with robot_stage(brain) as (made, _):
        await made.say("go")
        await until(lambda: len(made.agent.core.calls.known.open) == 2)
        assert "2 calls ended, 1 mission ended" in await stops_soon(made, "robot, stop")


@pytest.mark.feature("B5", "E7")
@pytest.mark.virtual_time
async def test_a_stop_is_no_answer_in_a_dialogue() -> None:
    brain = Brain([("follow", {"who": "Ann"})], [("elicit", {"question": "Which room?"})], "hm")
    async with robot_stage(brain) as (made, _):
        mission = await made.say("go")
        await until(lambda: made.agent.core.foreground.busy)
        assert "1 call ended" in await stops_soon(made, "robot, stop")
        assert not made.agent.core.foreground.busy
        assert (await mission.closed()).data["result"]["reason"] == "aborted"
        assert not any("The operator says" in entry.text for entry in made.entries("tool"))


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_stop_ends_what_others_have_begun_and_keeps_a_pause() -> None:
    async with robot_stage(Brain()) as (made, _):
        theirs = await made.harness.call("follow", caller="script", who="Bob")
        await theirs.answer()
        made.agent.core.control.pause()
        assert "follow of script" in await stops_soon(made)
        assert (await theirs.closed()).text == "the operator said 'stop!'"
        assert made.agent.core.control.paused
        assert "no call ran" in await stops_soon(made)


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_call_that_does_not_end_makes_the_stop_fail_and_the_robot_is_held() -> None:
    brain = Brain([("deaf", {})])
    async with robot_stage(brain) as (made, robot):
        await made.say("go")
        await until(lambda: made.agent.core.calls.known.open)
        stop = await made.say("stop")
        await until(lambda: made.agent.core.holding)
        closed = await stop.closed()
        assert closed.outcome == "failed"
        assert "may still run" in closed.text
        assert made.agent.core.control.paused
        robot.done.set()


@pytest.mark.feature("E7")
@pytest.mark.virtual_time
async def test_input_that_has_to_wait_is_answered_with_what_for_and_how_not_to() -> None:
    async with robot_stage(Brain("at once", for_ever)) as (made, _):
        assert (await made.say("hello")).texts("update")[1:] == []
        await until(lambda: not made.agent.core.loop.missions)
        await made.say("think about it")
        await until(lambda: made.agent.core.loop.turn is not None)
        second = await made.say("and?")
        third = await made.say("well?")
        await until(lambda: len(third.texts("update")) == 2)
        assert second.texts("update")[1] == (
            "waiting behind the turn on 'think about it'; `abort` stops now, `say --now` goes before all that waits"
        )
        assert "the turn on 'think about it' and 1 message;" in third.texts("update")[1]
        await stops_soon(made)
        made.agent.core.control.pause()
        paused = await made.say("now?")
        await until(lambda: len(paused.texts("update")) == 2)
        assert paused.texts("update")[1] == ("waiting behind the pause: `resume` lets it be heard, `abort` drops it")
        urgent = await made.harness.call("say", caller="operator", text="now!", now=True)
        await until(lambda: len(urgent.texts("update")) == 2)
        assert urgent.texts("update")[1] == paused.texts("update")[1]


@pytest.mark.feature("E4")
@pytest.mark.virtual_time
async def test_input_that_cant_wait_is_the_next_turn_and_calls_go_on() -> None:
    brain = Brain([("follow", {"who": "Ann"})], for_ever, "left it is", "the rest")
    async with robot_stage(brain) as (made, robot):
        first = await made.say("go")
        await until(lambda: len(brain.requests) == 2)
        waiting = await made.say("turn right")
        began = clock.monotonic()
        urgent = await made.harness.call("say", caller="operator", text="turn left", now=True)
        assert (await urgent.result())["text"] == "left it is"
        assert clock.monotonic() - began < SOON_S
        heard = [message.text for message in brain.requests[2].messages]
        assert heard[-1] == "turn left"
        assert "turn right" not in heard
        assert any("[I have stopped: the operator had input that could not wait." in text for text in heard)
        assert [call.skill for call in made.agent.core.calls.known.open] == ["follow"]
        assert (await waiting.result())["text"] == "the rest"
        robot.done.set()
        await first.closed()


@pytest.mark.feature("E7")
@pytest.mark.virtual_time
async def test_input_that_cant_wait_answers_no_dialogue() -> None:
    brain = Brain([("elicit", {"question": "Which room?"})], "I come")
    async with robot_stage(brain) as (made, _):
        await made.say("go")
        await until(lambda: made.agent.core.foreground.busy)
        urgent = await made.harness.call("say", caller="operator", text="come here", now=True)
        assert (await urgent.result())["text"] == "I come"


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_a_stop_of_any_length_acts() -> None:
    async with robot_stage(Brain([("follow", {})], "I follow")) as (made, _):
        said = await made.say("follow")
        await until(lambda: made.agent.core.calls.known.open)
        stopped = await (await made.say("st\u00adop! " * 4000)).closed()
        assert "1 call ended" in stopped.text
        assert "aborted" in (await said.closed()).text
