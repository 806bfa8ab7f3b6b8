"""Sub-agents, and calls that change hands."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.models.protocol import ModelRequest
from dimos_streams.tool_stream.event import Outcome
from tests.agent.policies.brain import Answer, Brain
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.agent.stage import Stage
from tests.helpers import until

AGENTS = {
    "helper": {"description": "walks", "prompt": "helper", "skills": ["walk", "look", "follow", "drop"]},
    "second": {"description": "looks", "prompt": "second", "skills": ["look"]},
}


def delegating(agent: str, task: str, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    return [("delegate", {"agent": agent, "task": task, **more})]


def times_shown(brain: Brain, prompt: str, words: str) -> int:
    """How many messages of the newest request with a prompt have the words."""
    for request in reversed(brain.requests):
        if request.messages[0].text.startswith(prompt):
            return sum(words in message.text for message in request.messages[1:])
    return 0


def opened(made: Stage, number: int) -> str:
    return made.agent.core.calls.known.open[number].call_id


def first_call(made: Stage) -> str:
    return opened(made, 0)


@pytest.mark.feature("E6", "D8")
@pytest.mark.virtual_time
async def test_a_task_with_its_own_conversation_and_skills_and_usage_that_sums_up() -> None:
    brain = Brain(
        delegating("helper", "walk a bit"),
        "all done",
        helper=[[("walk", {"distance_m": 2}), ("talk", {"characters": 8})], "walked"],
    )
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        said = await made.say("go")
        assert (await said.result())["text"] == "all done"
        assert robot.log_ == ["walk 2"]
        assert [entry.text for entry in made.entries("tool")] == ["helper: walked"]
        parent, child, second, _ = brain.requests
        assert {"delegate", "walk", "talk", "list_calls"} & brain.offered(0) == {
            "delegate",
            "walk",
            "talk",
        }
        assert {"hand_back", "walk", "look", "talk"} & brain.offered(1) == {"hand_back", "walk", "look"}
        assert [message.text for message in child.messages] == ["helper", "walk a bit"]
        assert second.messages[-1].text == "Not run: 'talk' is none of your skills."
        assert parent.messages[-1].text == "go"
        events = made.agent.core.events.after(0)
        (done,) = [event for event in events if event.kind == "done"]
        usage = [event for event in events if event.kind == "usage"]
        assert [bool(event.data.get("sub")) for event in usage] == [False, True, True, False]
        assert done.data["input_tokens"] == sum(event.data["input_tokens"] for event in usage) == 40
        assert done.data["requests"] == 4
        assert made.agent.core.model_watch.spent.tokens == 44
        assert all(said.id in event.missions for event in events if event.data.get("sub"))


@pytest.mark.virtual_time
async def test_too_deep_is_an_error_before_any_model_is_asked() -> None:
    deeper = delegating("helper", "go on")
    brain = Brain(deeper, "up", helper=[deeper, deeper, "too deep", "b", "a"])
    async with robot_stage(brain, agents=AGENTS, limits={"max_depth": 2}) as (made, _):
        assert (await (await made.say("go")).result())["text"] == "up"
        assert len(brain.requests) == 6
        (refused,) = [
            event
            for event in made.agent.core.events.after(0)
            if event.kind == "result" and "would be 3 deep; 2 is the limit" in event.data["text"]
        ]
        assert refused.data["is_error"]


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_a_call_that_is_handed_over_is_delivered_to_its_new_owner_once() -> None:
    def hand_over(request: ModelRequest) -> Any:
        return delegating("helper", "wait for Ann", calls=[first_call(made)])

    brain = Brain([("follow", {"who": "Ann"})], hand_over, "fine", helper=["waiting", "she has left"])
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        said = await made.say("go")
        await until(lambda: len(brain.requests) == 3)
        await asyncio.sleep(10)
        assert made.agent.core.loop.state == "executing"
        robot.done.set()
        assert (await said.result())["text"] == "fine"
        assert made.entries("tool")[-1].text == "helper: she has left"
        assert times_shown(brain, "helper", "Ann is gone") == 1
        assert times_shown(brain, "You", "Ann is gone") == 0


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_what_waits_of_a_call_is_handed_over_with_it() -> None:
    """Else a successor of the agent would take what comes first for heard, because what follows it was."""

    async def hand_over(request: ModelRequest) -> Any:
        await asyncio.sleep(3)
        return delegating("helper", "listen", calls=[first_call(made)])

    brain = Brain([("chatter", {"count": 3, "pause_s": 2.0})], hand_over, "fine", helper=["a", "b", "c", "d"])
    async with robot_stage(brain, agents=AGENTS) as (made, _):
        assert (await (await made.say("go")).result())["text"] == "fine"
        updates = [event for event in made.agent.core.events.after(0) if event.kind == "update"]
        heard = [(event.data["event"]["type"], event.data["event"]["text"]) for event in updates]
        assert heard == [("update", "1"), ("update", "2"), ("close", "3")]
        assert all(event.data.get("sub") for event in updates)


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_a_call_that_is_handed_back_unread_is_delivered_to_the_first_owner() -> None:
    def hand_over(request: ModelRequest) -> Any:
        return delegating("helper", "wait for Ann", calls=[first_call(made)])

    async def hand_back(request: ModelRequest) -> Any:
        robot.done.set()
        await asyncio.sleep(1)
        return [("hand_back", {"report": "no time"})]

    brain = Brain([("follow", {"who": "Ann"})], hand_over, "fine", "she has left", helper=[hand_back])
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        assert (await (await made.say("go")).result())["text"] == "she has left"
        assert times_shown(brain, "You", "Ann is gone") == 1
        assert times_shown(brain, "helper", "Ann is gone") == 0


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_results_in_mid_hand_over_reach_their_owner_once() -> None:
    """The helper owns Ann, the agent keeps Bob; both end while the helper works."""

    def hand_over(request: ModelRequest) -> Any:
        return delegating("helper", "wait for Ann", calls=[first_call(made)])

    async def work(request: ModelRequest) -> Any:
        robot.done.set()
        await asyncio.sleep(1)
        return [("look", {})]

    brain = Brain(
        [("follow", {"who": "Ann"}), ("follow", {"who": "Bob"})],
        hand_over,
        "x",
        "y",
        helper=[work, "seen", "gone"],
    )
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        await (await made.say("go")).result()
        everything = [message.text for request in brain.requests for message in request.messages]
        assert times_shown(brain, "helper", "Ann is gone") + times_shown(brain, "You", "Ann is gone") == 1
        assert times_shown(brain, "helper", "Bob is gone") == 0
        assert times_shown(brain, "You", "Bob is gone") == 1
        assert everything


@pytest.mark.slow
@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_what_a_sub_agent_has_begun_ends_its_task_or_is_handed_back() -> None:
    brain = Brain(
        delegating("helper", "follow Ann"),
        "she is away",
        delegating("helper", "follow Bob, do not wait"),
        "he is followed",
        "Bob is away",
        helper=[
            [("follow", {"who": "Ann"})],
            "waiting",
            "Ann left",
            [("follow", {"who": "Bob"}), ("hand_back", {"report": "Bob is being followed"})],
            "never said",
        ],
    )
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        first = await made.say("one")
        await until(lambda: len(brain.requests) == 3)
        await asyncio.sleep(30)
        assert made.agent.core.loop.state == "executing"
        robot.done.set()
        assert (await first.result())["text"] == "she is away"
        assert made.entries("tool")[-1].text == "helper: Ann left"
        robot.done.clear()
        second = await made.say("two")
        await made.until("assistant", "he is followed")
        answer = made.entries("tool")[-1]
        assert not answer.is_error
        assert answer.text.startswith("helper: Bob is being followed\nfollow (call ")
        robot.done.set()
        assert (await second.result())["text"] == "Bob is away"
        assert times_shown(brain, "You", "Bob is gone") == 1
        assert times_shown(brain, "helper", "Bob is gone") == 0


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_results_of_a_closed_owner_are_kept_in_the_record() -> None:
    brain = Brain(delegating("helper", "follow Ann"), "x", helper=[[("follow", {"who": "Ann"})], "waiting"])
    async with robot_stage(brain, agents=AGENTS) as (made, _):
        said = await made.say("go")
        await until(lambda: len(brain.requests) == 3)
        said.cancel()
        assert (await said.closed()).outcome is Outcome.CANCELLED
        await until(lambda: not made.agent.core.calls.known.open)
        await until(lambda: not made.agent.core.loop.missions)
        ends = [
            event
            for event in made.agent.core.events.after(0)
            if event.kind == "update" and event.data["event"]["type"] == "close"
        ]
        assert len(ends) == 1
        assert ends[0].data["event"]["data"]["outcome"] == "cancelled"
        assert len(brain.requests) == 3
        assert (await (await made.say("again")).result())["reason"] == "completed"


@pytest.mark.virtual_time
async def test_a_task_that_the_agents_end_cuts_off_is_cancelled() -> None:
    brain = Brain(delegating("helper", "follow Ann"), helper=[[("follow", {"who": "Ann"})], "waiting"])
    async with robot_stage(brain, agents=AGENTS) as (made, _):
        await made.say("go")
        await until(lambda: len(brain.requests) == 3)
    (end,) = [event for event in made.agent.core.events.after(0) if event.kind == "sub_mission_end"]
    assert end.data["reason"] == "cancelled"


@pytest.mark.virtual_time
async def test_the_operators_input_goes_to_who_works() -> None:
    brain = Brain(
        delegating("helper", "follow Ann"),
        "over",
        helper=[[("follow", {"who": "Ann"})], "waiting", "yes sir", "end"],
    )
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        first = await made.say("go")
        await until(lambda: len(brain.requests) == 3)
        second = await made.say("hurry")
        assert (await second.result())["text"] == "yes sir"
        assert brain.requests[3].messages[-1].text == "hurry"
        robot.done.set()
        assert (await first.result())["text"] == "over"


@pytest.mark.virtual_time
async def test_input_for_who_works_that_was_withdrawn_is_noted_and_not_heard() -> None:
    brain = Brain(delegating("helper", "follow Ann"), "over", helper=[[("follow", {"who": "Ann"})], "waiting", "end"])
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        first = await made.say("go")
        await until(lambda: len(brain.requests) == 3)
        await (await made.harness.call("pause", caller="operator")).result()
        second = await made.say("hurry")
        second.cancel()
        await second.closed()
        await (await made.harness.call("resume", caller="operator")).result()
        robot.done.set()
        assert (await first.result())["text"] == "over"
        notes = [event.data["text"] for event in made.agent.core.events.after(0) if event.kind == "note"]
        assert notes == ["not heard any more (cancelled): hurry"]
        assert times_shown(brain, "helper", "hurry") == 0


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_who_works_begins_nothing_for_input_that_was_withdrawn_while_it_thought() -> None:
    async def slowly(request: ModelRequest) -> list[tuple[str, dict[str, Any]]]:
        await asyncio.sleep(1.0)
        return [("walk", {"distance_m": 3})]

    helper: list[Answer] = [[("follow", {"who": "Ann"})], "waiting", slowly, "waiting", "end"]
    brain = Brain(delegating("helper", "follow Ann"), "over", helper=helper)
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        first = await made.say("go")
        await until(lambda: len(brain.requests) == 3)
        second = await made.say("walk 3")
        await until(lambda: len(brain.requests) == 4)
        second.cancel()
        await second.closed()
        await asyncio.sleep(2.0)
        robot.done.set()
        assert (await first.result())["text"] == "over"
        assert robot.log_ == []


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_pause_abort_and_approvals_hold_for_sub_agents() -> None:
    def helper() -> list[Any]:
        return [[("look", {})], [("drop", {"what": "a"})], [("follow", {"who": "Ann"})], "waiting", "left"]

    brain = Brain(delegating("helper", "go"), "over", delegating("helper", "go"), helper=helper() + helper())
    async with robot_stage(brain, agents=AGENTS) as (made, robot):
        first = await made.say("go")
        await made.harness.call("pause", caller="operator")
        await asyncio.sleep(5)
        paused_at = len(brain.requests)
        await asyncio.sleep(5)
        assert len(brain.requests) == paused_at
        await made.harness.call("resume", caller="operator")
        await decide(made, "approve")
        await until(lambda: len(brain.requests) == 5)
        await made.harness.call("pause", caller="operator")
        robot.done.set()
        await asyncio.sleep(5)
        assert len(brain.requests) == 5
        await made.harness.call("resume", caller="operator")
        assert (await first.result())["text"] == "over"
        robot.done.clear()
        second = await made.say("again")
        await decide(made, "approve")
        await until(lambda: made.agent.core.calls.known.open)
        aborting = await made.harness.call("abort", caller="operator")
        assert len((await aborting.result())["cancelled"]) == 1
        assert (await second.closed()).data["result"]["reason"] == "aborted"
        asked = len(brain.requests)
        await asyncio.sleep(10)
        assert len(brain.requests) == asked
        assert made.agent.core.loop.state == "idle"
        assert robot.log_ == ["drop a", "drop a"]
        ends = [event.data for event in made.agent.core.events.after(0) if event.kind == "sub_mission_end"]
        assert [end["reason"] for end in ends] == ["completed", "aborted"]


@pytest.mark.virtual_time
async def test_a_model_that_fails_and_names_that_are_wrong() -> None:
    def fail(request: ModelRequest) -> Any:
        raise RuntimeError("no model")

    brain = Brain(
        delegating("helpr", "x"),
        delegating("helper", "x", calls=["nonsense"]),
        delegating("helper", "x"),
        "so be it",
        helper=[fail],
    )
    limits = {"max_consecutive_errors": 5}
    async with robot_stage(brain, agents=AGENTS, limits=limits) as (made, _):
        assert (await (await made.say("go")).result())["text"] == "so be it"
        wrong, call, failed = (entry.text for entry in made.entries("tool"))
        assert "'helper' or 'second'" in wrong
        assert "no call with the id 'nonsense' runs" in call
        assert failed == "helper has nothing to say (ended: error)"


@pytest.mark.slow
@pytest.mark.feature("E6")
@pytest.mark.parametrize("seed", range(15))
@pytest.mark.virtual_time
async def test_whatever_the_timing_each_result_is_delivered_once(seed: int) -> None:
    """Calls are begun, handed over, back, and end at random moments; some are cancelled, sometimes all is paused."""

    rng = random.Random(seed)
    names = iter(range(1000))
    begun: list[str] = []

    async def act(request: ModelRequest) -> Any:
        await asyncio.sleep(rng.random())
        helper = request.messages[0].text == "helper"
        open_calls = [call.call_id for call in made.agent.core.calls.known.open]
        choice = rng.choice(["follow", "follow", "delegate", "look", "back", "cancel", "text", "text"])
        if choice == "follow":
            begun.append(f"n{next(names)}.")
            return [("follow", {"who": begun[-1]})]
        if choice == "delegate":
            handed = rng.sample(open_calls, rng.randint(0, len(open_calls)))
            return delegating(rng.choice(["helper", "second"]), "task", calls=handed)
        if choice == "back" and helper:
            return [("hand_back", {"report": "r"})]
        if choice == "cancel" and open_calls:
            return [("cancel_call", {"call_id": rng.choice(open_calls)})]
        return [("look", {})] if choice == "look" else "ok"

    answers = [act] * 60
    brain = Brain(*answers, helper=answers, second=answers)
    async with robot_stage(brain, agents=AGENTS, repetition={"stop_at": None}) as (made, robot):
        robot_missions = []
        for _ in range(4):
            robot_missions.append(await made.say("go"))
            await asyncio.sleep(rng.random() * 3)
            if rng.random() < 0.5:
                await made.harness.call("pause", caller="operator")
                await asyncio.sleep(rng.random())
                await made.harness.call("resume", caller="operator")
            robot.done.set()
            await asyncio.sleep(rng.random() * 2)
            robot.done.clear()
        while not all(any(event.type == "close" for event in said.events) for said in robot_missions):
            robot.done.set()
            await asyncio.sleep(1)
        assert not made.agent.core.calls.known.open
        events = made.agent.core.events.after(0)
        opened = [event.data["call_id"] for event in events if event.kind == "call_open"]
        closes: list[str] = []
        for event in events:
            if event.kind in ("update", "result") and event.data.get("event"):
                closing = event.data["event"]
                if closing["type"] == "close" and closing["call_id"]:
                    closes.append(closing["call_id"])
        assert len(closes) == len(set(closes))
        assert set(closes) == set(opened)
        assert made.agent.core.loop.state == "idle"


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_a_sub_agent_reaches_only_calls_that_it_has_begun_or_was_handed() -> None:
    follow: Answer = [("follow", {"who": who}) for who in ("Ann", "Bob")]
    ann, bob, cid = range(3)

    def ended(number: int) -> Answer:
        return lambda request: [("cancel_call", {"call_id": opened(made, number)})]

    def handed(agent: str, number: int) -> Answer:
        return lambda request: delegating(agent, "take over", calls=[opened(made, number)])

    brain = Brain(
        follow,
        handed("helper", bob),
        ended(ann),
        "done",
        helper=[
            [("follow", {"who": "Cid"})],
            [("list_calls", {})],
            ended(ann),
            handed("second", ann),
            handed("second", cid),
            [("cancel_call", {"call_id": "all"})],
            "ended",
        ],
        second=[ended(bob), [("hand_back", {"report": "no"})]],
    )
    async with robot_stage(brain, agents=AGENTS) as (made, _):
        said = await made.say("go")
        await said.closed()
    events = made.agent.core.events.after(0)
    of_ann, of_bob, _ = (event.data["call_id"] for event in events if event.kind == "call_open")
    results = [e.data["text"] for e in events if e.kind == "result" and e.data["skill"] != "follow"]
    yours = "yours are those that you have begun or were handed"
    assert results[0].split("\n")[0].startswith(f'{of_bob}: follow(who="Bob")')
    assert 'follow(who="Cid")' in results[0]
    assert of_ann not in results[0]
    assert results[1] == results[2] == f"call {of_ann!r} of 'follow' belongs to agent 'agent': {yours}"
    assert results[3] == f"call {of_bob!r} of 'follow' belongs to sub-agent 'helper': {yours}"
    assert results[6].count("of follow") == 2
    assert of_ann not in results[6]
    assert results[-1].startswith(f"Call {of_ann} of follow was asked to end")


@pytest.mark.feature("E6")
@pytest.mark.virtual_time
async def test_a_sub_agent_puts_nothing_in_the_place_of_a_call_that_is_not_its_own() -> None:
    agents = {"helper": {"description": "patrols", "prompt": "helper", "skills": ["patrol"]}}
    hall, yard = [("patrol", {"where": "hall"})], [("patrol", {"where": "yard"})]
    brain = Brain(hall, delegating("helper", "the yard"), yard, "on it", helper=[yard, "busy"])
    async with robot_stage(brain, agents=agents) as (made, robot):
        said = await made.say("go")
        await until(lambda: robot.log_[-1:] == ["patrol yard begins"])
        assert robot.log_ == ["patrol hall begins", "patrol hall ends", "patrol yard begins"]
        results = [event.data for event in made.agent.core.events.after(0) if event.kind == "result"]
        (of_helper,) = [result["text"] for result in results if result.get("sub")]
        assert "of 'patrol' belongs to agent 'agent': yours are those" in of_helper
        robot.done.set()
        await said.closed()


@pytest.mark.feature("E9")
@pytest.mark.virtual_time
async def test_a_defect_in_a_sub_agents_loop_is_logged_with_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    brain = Brain(delegating("helper", "walk"), "too bad", helper=["never asked"])
    async with robot_stage(brain, agents=AGENTS) as (made, _):
        run = AgentLoop.run

        async def fail(loop: AgentLoop) -> None:
            if loop is made.agent.core.loop:
                await run(loop)
            raise AttributeError("'NoneType' object has no attribute 'x'")

        monkeypatch.setattr(AgentLoop, "run", fail)
        assert (await (await made.say("go")).result())["text"] == "too bad"
        (told,) = [entry.text for entry in made.entries("tool")]
        assert "AttributeError" in told
    (record,) = [record for record in caplog.records if "tool delegate failed" in record.getMessage()]
    assert record.exc_info is not None
    assert record.exc_info[0] is AttributeError
