"""The agent with the real bridge and hosts, in virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams.tool_stream.event import Outcome
from tests.agent.stage import calling, script, stage
from tests.helpers import run_virtual


@pytest.mark.feature("A7")
@pytest.mark.virtual_time
async def test_outcome_and_result_are_in_the_conversation_tied_to_the_call() -> None:
    async with stage() as s:
        said = await s.say("look out for a person in a red shirt")
        answer = await s.until("tool", "Looking out")
        s.skills.sight.set_result("a man in red")
        result = await said.result()
        assert result["reason"] == "completed"
        assert "look_out_for is done" in result["text"]
        update, close = s.entries("event")
        assert update.call_id == close.call_id == answer.call_id
        assert close.event is not None
        assert close.event.outcome is Outcome.COMPLETED
        assert close.event.data["result"] == {"label": "a man in red"}
        assert close.to_dict()["outcome"] == "completed"


@pytest.mark.virtual_time
async def test_look_out_and_follow_is_one_mission() -> None:
    async with stage() as s:
        said = await s.say("look out for a person in a red shirt and follow them")
        assert await said.answer() == "look out for a person in a red shirt and follow them"
        await s.until("tool", "Looking out for person in a red shirt")
        s.skills.sight.set_result("man in a red shirt")
        following = await s.until("event", "Following man in a red shirt")
        assert following.call_id != s.entries("tool")[0].call_id
        await asyncio.sleep(5)
        assert not any(event.type == "close" for event in said.events)
        s.skills.left.set()
        result = await said.result()
        assert "man in a red shirt has left" in result["text"]
        assert result["reason"] == "completed"
        assert all(said.id in entry.missions for entry in s.entries())


@pytest.mark.virtual_time
async def test_progress_is_in_the_record_and_causes_no_turn() -> None:
    async with stage() as s:
        said = await s.say("follow the person in red")
        progress = await s.until("progress", "2 m")
        assert len(s.entries("progress")) == 1
        assert len(s.entries("assistant")) == 2
        s.skills.left.set()
        await said.result()
        assert not s.entries("progress")
        assert progress.call_id == s.entries("tool")[0].call_id
        assert [event.text for event in said.events if event.type == "progress"]


@pytest.mark.virtual_time
async def test_say_streams_the_entries_of_its_mission() -> None:
    async with stage() as s:
        said = await s.say("move 1 then move 2")
        await said.result()
        entries = [event.data["entry"] for event in said.events if event.type == "update"]
        assert [entry["role"] for entry in entries] == [
            *("operator", "assistant", "tool", "assistant", "tool", "assistant")
        ]
        assert entries[1]["tool_calls"][0]["skill"] == "move"
        assert entries[2]["text"] == "moved 1 m"
        assert s.skills.moves == [1.0, 2.0]


@pytest.mark.virtual_time
async def test_a_failed_step_ends_the_command() -> None:
    async with stage() as s:
        closed = await (await s.say("move 9 then move 1")).closed()
        assert closed.outcome == "failed"
        assert closed.data["result"] == {"text": "move: 9 m is too far", "reason": "call_failed"}
        assert s.entries("tool")[0].is_error
        assert s.skills.moves == []


@pytest.mark.virtual_time
async def test_missions_end_separately_and_stop_stops() -> None:
    async with stage() as s:
        following = await s.say("follow the man in blue")
        await s.until("tool", "Following man in blue")
        moving = await s.say("move 1")
        assert (await moving.result())["text"] == "move: moved 1 m"
        assert not any(event.type == "close" for event in following.events)
        stopping = await s.say("stop")
        assert "stopped: 1 call ended, 1 mission ended" in (await stopping.closed()).text
        ended = await following.closed()
        assert ended.data["result"]["reason"] == "aborted"
        assert "the operator said 'stop'" in following.texts("update")[-1]
        roles = {event.data["entry"]["text"] for event in moving.events if event.type == "update"}
        assert not any("blue" in text for text in roles)


@pytest.mark.virtual_time
async def test_cancelling_say_cancels_its_calls_only() -> None:
    async with stage() as s:
        looking = await s.say("look out for a dog")
        await s.until("tool", "Looking out for dog")
        following = await s.say("follow the man")
        await s.until("tool", "Following man")
        following.cancel()
        assert (await following.closed()).outcome is Outcome.CANCELLED
        await s.until("event", "withdrawn")
        (open_call,) = [view for view in await s.bridge.broker.calls(open_only=True) if view.caller == "agent"]
        assert open_call.skill == "look_out_for"
        looking.cancel()
        await looking.closed()


@pytest.mark.virtual_time
async def test_a_mission_whose_call_an_operator_cancels_did_not_complete() -> None:
    async with stage() as s:
        following = await s.say("follow the man")
        await s.until("tool", "Following man")
        (open_call,) = [view for view in await s.bridge.broker.calls(open_only=True) if view.caller == "agent"]
        await s.bridge.broker.cancel(open_call.call_id, "the operator wants it to go to 1, 2")
        closed = await following.closed()
        why = "follow_person: the operator wants it to go to 1, 2"
        assert (closed.outcome, closed.data["result"]["reason"]) == (Outcome.FAILED, "call_cancelled")
        assert closed.text == f"the mission did not complete: call_cancelled ({why})"


@pytest.mark.feature("E1")
@pytest.mark.virtual_time
async def test_four_ways_to_answer(tmp_path: Path) -> None:
    config = script(
        tmp_path / "script.yaml",
        calling("move", distance_m=1),
        calling("move", distance_m=9),
        calling("follow_person", description="x"),
        calling("look_out_for", descriptions=["y"], timeout_s=1),
        {"text": "now wait"},
        {"text": "the lookout failed"},
        {"text": "the pursuit is over"},
    )
    async with stage(config) as s:
        said = await s.say("go")
        await s.until("assistant", "the lookout failed")
        s.skills.left.set()
        assert await said.result() == {"text": "the pursuit is over", "reason": "completed"}
        plain, refused, followed, looked = s.entries("tool")
        assert (plain.text, plain.is_error) == ("moved 1 m", False)
        assert (refused.text, refused.is_error) == ("9 m is too far", True)
        assert followed.text.startswith("Following x\n")
        assert not followed.is_error
        failure, ending = s.entries("event")
        assert failure.call_id == looked.call_id
        assert failure.is_error
        assert failure.event is not None
        assert failure.event.outcome is Outcome.FAILED
        assert ending.call_id == followed.call_id
        assert "x has left" in ending.text


@pytest.mark.virtual_time
async def test_results_that_come_while_the_agent_works_are_one_turn(tmp_path: Path) -> None:
    config = script(
        tmp_path / "script.yaml",
        calling("follow_person", description="x"),
        calling("look_out_for", descriptions=["y"]),
        calling("think", seconds=5),
        {"text": "thought"},
        {"text": "both are over", "expect": "[look_out_for"},
        {"text": "thinking is over"},
    )
    async with stage(config | {"answer_timeout_s": 20}) as s:
        said = await s.say("go")
        await s.until("tool", "Looking out")
        s.skills.left.set()
        await asyncio.sleep(1)
        s.skills.sight.set_result("z")
        await said.closed()
        roles = [entry.role for entry in s.entries()]
        turn = roles.index("event")
        assert roles[turn - 1] == "assistant"
        # The pursuit's end, the lookout's find, its end, and the end of thinking: all before the next answer.
        assert roles[turn : turn + 3] == ["event", "event", "event"]


@pytest.mark.virtual_time
async def test_an_answer_that_does_not_come_in_time(tmp_path: Path) -> None:
    config = script(tmp_path / "script.yaml", calling("think", seconds=15), {}, {"text": "late"}, {"text": "end"})
    async with stage(config) as s:
        said = await s.say("go")
        result = await said.result()
        assert s.entries("tool")[0].text.startswith("No answer within 10 s. Call ")
        late = s.entries("event")[0]
        assert late.call_id == s.entries("tool")[0].call_id
        assert "thought" in late.text
        assert result["reason"] == "completed"


@pytest.mark.parametrize(
    ("turns", "reason", "last"),
    [
        ([calling("move", distance_m=1)] * 5, "max_iterations", "note"),
        ([{"text": "part", "error": "overloaded"}], "error", "assistant"),
        ([{"text": "part", "finish": None}], "cut", "assistant"),
        ([{"text": "part", "finish": "length"}], "length", "assistant"),
        ([calling("move", distance_m=1)] * 2 + [{"text": "done"}], "completed", "assistant"),
        ([], "script_ended", "assistant"),
    ],
)
@pytest.mark.virtual_time
async def test_reasons(tmp_path: Path, turns: list[dict[str, object]], reason: str, last: str) -> None:
    async with stage(script(tmp_path / "script.yaml", *turns) | {"max_iterations": 3}) as s:
        said = await s.say("go")
        closed = await said.closed()
        assert closed.data["result"]["reason"] == reason
        assert closed.outcome == ("completed" if reason == "completed" else "failed")
        assert reason == "completed" or f"did not complete: {reason} (" in closed.text
        assert s.entries()[-1].role == last
        # The agent lives: it takes the next words.
        assert (await (await s.say("again")).closed()).data["result"]["reason"] != ""


@pytest.mark.virtual_time
async def test_damaged_calls_never_act(tmp_path: Path) -> None:
    truncated = {"deltas": [{"index": 0, "name": "move", "arguments": '{"distance_m": 1'}]}
    malformed = {"deltas": [{"index": 0, "name": "move", "arguments": "{distance_m: 1}"}]}
    cut = calling("move", distance_m=1) | {"finish": None}
    unknown = calling("mov", distance_m=1)
    wrong = calling("move", distance_m="far")
    config = script(tmp_path / "script.yaml", truncated, malformed, cut, unknown, wrong, {"text": "sorry"})
    async with stage(config | {"limits": {"max_consecutive_errors": 10}}) as s:
        await (await s.say("go")).result()
        assert s.skills.moves == []
        assert all(entry.is_error for entry in s.entries("tool"))
        texts = [entry.text for entry in s.entries("tool")]
        assert "truncated (EOF while parsing" in texts[0]
        assert texts[0].endswith('{"distance_m": 1')
        assert "malformed (key must be a string" in texts[1]
        assert "the answer was cut off" in texts[2]
        assert "did you mean 'move'?" in texts[3]
        assert "distance_m" in texts[4]
        calls = await s.bridge.broker.calls()
        assert [view.skill for view in calls if view.caller == "agent"] == []


@pytest.mark.virtual_time
async def test_the_operators_skills_are_not_offered() -> None:
    async with stage() as s:
        result = await (await s.say("help")).result()
        assert result["text"].startswith("I understand: follow the person in red; look out for")


def test_two_runs_are_the_same() -> None:
    async def main() -> list[dict[str, object]]:
        async with stage() as s:
            said = await s.say("look out for a cat and follow it")
            await s.until("tool", "Looking out")
            s.skills.sight.set_result("cat")
            await s.until("event", "Following cat")
            s.skills.left.set()
            await said.result()
            return [entry.to_dict() for entry in s.entries()]

    assert run_virtual(main()) == run_virtual(main())
