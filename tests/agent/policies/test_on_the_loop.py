"""The policies on the real loop, bridge and hosts, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.models.protocol import Message, ModelRequest, ToolResultMessage
from dimos_streams.tool_stream.event import Outcome
from tests.agent.policies.brain import Answer, Brain
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.agent.stage import Stage
from tests.helpers import until


def results(made: Stage) -> list[str]:
    return [entry.text for entry in made.entries("tool")]


def last(request: ModelRequest) -> Message:
    return request.messages[-1]


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_blocked_motion_is_shown_the_way_out_and_takes_it() -> None:
    walks = [("walk", {"distance_m": n}) for n in (1, 2, 3)]
    steps = [{"skill": name, "arguments": arguments} for name, arguments in (walks[2], walks[0])]
    brain = Brain(
        walks,
        [("create_plan", {"goal": "go far", "steps": steps[:1]})],
        [("add_plan_steps", {"plan": "plan-1", "steps": steps[1:]}), ("walk", {"distance_m": 3})],
        [("submit_plan", {"plan": "plan-1"})],
        [("walk", {"distance_m": 3}), ("walk", {"distance_m": 3}), ("walk", {"distance_m": 2})],
        [("walk", {"distance_m": 1}), ("check_plan", {"plan": "plan-1"})],
        "done",
    )
    async with robot_stage(brain, plan={"motions": 2}) as (made, robot):
        said = await made.say("walk far")
        pending = await decide(made, "approve")
        assert (pending["skill"], pending["reason"]) == ("submit_plan", "a plan; for 'walk far'")
        assert pending["arguments"]["steps"] == steps
        assert (await said.result())["reason"] == "completed"
        assert robot.log_ == ["walk 1", "walk 2", "walk 3", "walk 1"]
        replies = results(made)
        assert replies[2].startswith("Not run: walk(distance_m=3) needs an approved plan")
        assert "create_plan" in replies[2]
        assert "submit_plan" in replies[2]
        assert [text.startswith("Not run") for text in replies[5:11]] == [
            True,
            False,
            False,
            True,
            True,
            False,
        ]
        assert "1. walk(distance_m=3) - begun\n2. walk(distance_m=1) - begun" in replies[-1]
        plans = await made.harness.call("plans", caller="operator")
        assert [step["used"] for step in (await plans.result())[0]["steps"]] == [True, True]


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_zones_of_the_config_need_a_plan_and_refusals_are_not_charged() -> None:
    zone = {"name": "lab", "polygon": [[1, 1], [3, 1], [3, 3], [1, 3]]}
    into = [("go_to", {"x": 2, "y": 2})]
    brain = Brain(*[into] * 5, [("go_to", {"x": 0, "y": 2})], "not allowed")
    async with robot_stage(brain, zones=[zone], repetition={"warn_at": None}) as (made, robot):
        result = await (await made.say("go")).result()
        assert result["reason"] == "completed"
        assert robot.log_ == ["go_to 0 2"]
        assert all("restricted zone 'lab'" in text for text in results(made)[:5])


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_rejected_plan_opens_nothing() -> None:
    step = {"skill": "walk", "arguments": {"distance_m": 1}}
    brain = Brain(
        [("create_plan", {"goal": "g", "steps": [{"skill": "walc", "arguments": {}}]})],
        [("create_plan", {"goal": "g", "steps": [step]})],
        [("submit_plan", {"plan": "plan-1"})],
        [("walk", {"distance_m": 1})],
        "no",
    )
    async with robot_stage(brain, plan={"motions": 0}) as (made, robot):
        said = await made.say("walk")
        await decide(made, "reject", reason="the floor is wet")
        await said.result()
        replies = results(made)
        assert "did you mean 'walk'" in replies[0]
        assert "rejected: the floor is wet" in replies[2]
        assert replies[3].startswith("Not run")
        assert robot.log_ == []


@pytest.mark.feature("D5", "C5")
@pytest.mark.virtual_time
async def test_approve_deny_and_modify() -> None:
    brain = Brain(
        [("drop", {"what": "a"})],
        [("drop", {"what": "b"})],
        [("walk", {"distance_m": 5})],
        [("walk", {"distance_m": 5}), ("drop", {"what": "a"}), ("drop", {"what": "b"})],
        "ok",
    )
    rules = [{"skill": "walk", "arguments": {"distance_m": ">2"}, "reason": "far"}]
    async with robot_stage(brain, approval={"rules": rules}) as (made, robot):
        said = await made.say("go")
        assert (await decide(made, "approve"))["arguments"] == {"what": "a"}
        await decide(made, "reject", reason="it is fragile")
        far = await decide(made, "approve", arguments={"distance_m": 1})
        assert far["reason"] == "far; for 'go'"
        await decide(made, "approve", arguments={"distance_m": 2})
        await said.result()
        replies = results(made)
        assert replies[0] == "dropped a"
        assert 'drop(what="b") was not approved: it is fragile' in replies[1]
        assert replies[2].endswith("walked 1 m")
        assert "changed the arguments: walk(distance_m=1" in made.entries("tool")[2].note
        assert replies[3].endswith("walked 2 m")
        assert replies[4] == "dropped a"  # the same call was approved before
        assert "it is fragile" in replies[5]
        assert robot.log_ == ["drop a", "walk 1", "walk 2", "drop a"]


@pytest.mark.feature("D5", "C5")
@pytest.mark.virtual_time
async def test_modified_arguments_are_validated_and_the_agent_is_free_meanwhile() -> None:
    brain = Brain([("walk", {"distance_m": 5})], "ok")
    async with robot_stage(brain, approval={"rules": [{"skill": "walk"}]}) as (made, robot):
        said = await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
        (view,) = made.agent.core.gate_state.approvals.pending()
        assert any(view.id in text and "walk(distance_m=5)" in text for text in said.texts("update"))
        for arguments, problem in (({"distance_m": 50}, "distance_m"), ({"distance": 1}, "distance")):
            for name, more in (("decide", {"decision": "approve"}), ("amend", {})):
                call = await made.harness.call(name, caller="op", approval=view.id, arguments=arguments, **more)
                close = await call.closed()
                assert close.outcome is Outcome.FAILED
                assert problem in close.text
        assert not said.texts("close")
        await (await made.harness.call("amend", caller="op", approval=view.id, arguments={"distance_m": 3})).result()
        for decision in ("approve", "approve", "reject"):  # the others change nothing
            call = await made.harness.call("decide", caller="op", approval=view.id, decision=decision)
            close = await call.closed()
            assert close.outcome is (Outcome.FAILED if decision == "reject" else Outcome.COMPLETED)
            assert "approved" in close.text
        await said.result()
        assert robot.log_ == ["walk 3"]
        kinds = [event.kind for event in made.agent.core.events.after(0) if event.kind.startswith("approval")]
        assert kinds == ["approval_created", "approval_changed", "approval_decided"]


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_deleting_and_timing_out_wake_the_waiter_as_a_denial() -> None:
    brain = Brain([("drop", {"what": "a"})], [("drop", {"what": "b"})], "ok")
    async with robot_stage(brain, approval={"timeout_s": 20}) as (made, robot):
        said = await made.say("go")
        await decide(made, "delete")
        await said.result(60)
        replies = results(made)
        assert "was not approved: the operator has dropped it" in replies[0]
        assert "was not approved: nobody decided in time" in replies[1]
        assert robot.log_ == []


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_a_decision_from_within_the_creating_event_counts() -> None:
    brain = Brain([("drop", {"what": "a"})], "ok")
    async with robot_stage(brain) as (made, robot):
        core = made.agent.core

        def approve(event: Any) -> None:
            if event.kind == "approval_created":
                core.gate_state.approvals.decide(event.data["approval"]["id"], "approve")

        core.events.listen(approve)
        await (await made.say("go")).result()
        assert robot.log_ == ["drop a"]


@pytest.mark.virtual_time
async def test_withdrawing_a_mission_withdraws_its_question() -> None:
    brain = Brain([("drop", {"what": "a"})], "ok")
    async with robot_stage(brain) as (made, robot):
        said = await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
        said.cancel()
        await said.closed()
        await until(lambda: not made.agent.core.gate_state.approvals.pending())
        assert robot.log_ == []


@pytest.mark.feature("D4")
@pytest.mark.virtual_time
async def test_repetition_is_warned_of_hinted_at_and_stopped() -> None:
    brain = Brain(*[[("talk", {"characters": 8})], [("talk", {"characters": 16})]] * 20)
    async with robot_stage(brain, max_iterations=40) as (made, _):
        closed = await (await made.say("go")).closed()
        assert closed.data["result"]["reason"] == "repetition"
        assert len(brain.requests) == 18
        notes = [entry.text for entry in made.entries("note") if "times in a row" in entry.text]
        assert [text.split(" times")[0][-1] for text in notes] == ["3", "6", "9"]
        seen = [
            number
            for number, request in enumerate(brain.requests, 1)
            if any("try something else" in message.text for message in request.messages)
        ]
        assert seen == list(range(13, 19))
        assert "not run" in results(made)[-1]


@pytest.mark.slow
@pytest.mark.feature("D4")
@pytest.mark.virtual_time
async def test_polling_and_changed_arguments_are_no_repetition() -> None:
    looks: list[Answer] = [[("look", {})]] * 15
    talks: list[Answer] = [[("talk", {"characters": 8 * n})] for n in range(1, 15)]
    brain = Brain(*looks, *talks, "done")
    async with robot_stage(brain, max_iterations=40) as (made, _):
        assert (await (await made.say("go")).result())["text"] == "done"
        assert made.entries("note") == []


@pytest.mark.feature("D6")
@pytest.mark.virtual_time
async def test_large_results_are_shortened_readable_and_masked_later_and_errors_stay_whole() -> None:
    brain = Brain(
        [("talk", {"characters": 40_000}), ("fail", {})],
        [("read_result", {"reference": "result-1", "offset": 20_000, "length": 800})],
        [("read_result", {"reference": "result-1", "search": "0004321"})],
        "a",
        "b",
    )
    async with robot_stage(brain, results={"max_characters": 1000, "masked_after": 2}) as (made, _):
        await (await made.say("go")).result()
        await (await made.say("go on")).result()
        shortened, error, part, found = results(made)
        assert len(shortened) < 1300
        assert "39000 of 40000 characters" in shortened
        assert shortened.endswith("0004999 ")
        assert error == "x" * 9000
        assert part.endswith("".join(f"{number:07d} " for number in range(2500, 2600)))
        assert "0004321 " in found
        shown = [message for message in brain.requests[-1].messages if isinstance(message, ToolResultMessage)]
        assert "old result of talk, 40000 characters" in shown[0].text
        assert shown[1].text == error


@pytest.mark.feature("D6")
@pytest.mark.virtual_time
async def test_a_result_of_a_megabyte() -> None:
    """A tool of the agent may give more than fits into one event."""

    whole = "".join(f"{number:07d} " for number in range(125_000))
    brain = Brain([("dump", {})], [("read_result", {"reference": "result-1", "search": "0099999"})], "ok")
    async with robot_stage(brain) as (made, _):
        from dimos_streams.agent.tools.local_tools import LocalTool, LocalTools, NoArguments

        async def dump(arguments: NoArguments, missions: tuple[Mission, ...]) -> str:
            return whole

        tool = LocalTool(name="dump", description="", arguments=NoArguments, run=dump)
        local = made.agent.core.loop.parts.toolbox.local
        assert isinstance(local, LocalTools)
        local.add([tool])
        await (await made.say("go")).result()
        assert f"{len(whole) - 8000} of {len(whole)} characters" in results(made)[0]
        assert "0099999 0100000" in results(made)[1]


@pytest.mark.feature("E2")
@pytest.mark.virtual_time
async def test_replace_stops_the_old_one_before_the_new_one_starts() -> None:
    brain = Brain([("patrol", {"where": "hall"})], [("patrol", {"where": "attic"})], "ok")
    async with robot_stage(brain) as (made, robot):
        said = await made.say("go")
        await made.until("assistant", "ok")
        assert robot.log_ == ["patrol hall begins", "patrol hall ends", "patrol attic begins"]
        robot.done.set()
        await said.result()


@pytest.mark.feature("E2")
@pytest.mark.virtual_time
async def test_a_protected_one_is_not_replaced() -> None:
    brain = Brain([("guard", {"where": "hall"})], [("guard", {"where": "attic"})], "ok")
    async with robot_stage(brain, duplicates={"guard": "replace"}) as (made, robot):
        said = await made.say("go")
        await made.until("assistant", "ok")
        assert robot.log_ == ["guard hall begins"]
        assert "no other call takes the place of one of 'guard'" in results(made)[1]
        robot.done.set()
        await said.result()


@pytest.mark.feature("E2")
@pytest.mark.virtual_time
async def test_the_scope_may_be_the_arguments() -> None:
    brain = Brain([("watch", {"where": where}) for where in ("hall", "attic", "hall")], "ok")
    async with robot_stage(brain) as (made, robot):
        said = await made.say("go")
        await made.until("assistant", "ok")
        assert robot.log_ == ["watch hall begins", "watch attic begins"]
        assert "'watch' runs already as call" in results(made)[2]
        robot.done.set()
        await said.result()


@pytest.mark.feature("E2")
@pytest.mark.parametrize(
    ("choice", "log"),
    [
        ("allow", ["sing hall begins", "sing attic begins"]),
        ("replace", ["sing hall begins", "sing hall ends", "sing attic begins"]),
    ],
)
@pytest.mark.virtual_time
async def test_the_model_confirms(choice: str, log: list[str]) -> None:
    again = {"where": "attic"}
    brain = Brain(
        [("sing", {"where": "hall"})], [("sing", again)], [("sing", {**again, "on_duplicate": choice})], "ok"
    )
    async with robot_stage(brain) as (made, robot):
        said = await made.say("go")
        await made.until("assistant", "ok")
        assert "on_duplicate='allow'" in results(made)[1]
        (tool,) = [tool for tool in brain.requests[0].tools if tool.name == "sing"]
        assert tool.parameters["properties"]["on_duplicate"]["enum"] == ["allow", "replace"]
        assert robot.log_ == log
        robot.done.set()
        await said.result()


@pytest.mark.feature("E2")
@pytest.mark.virtual_time
async def test_reject_and_allow_of_the_config() -> None:
    brain = Brain([("patrol", {"where": "a"}), ("sing", {"where": "a"})], [("patrol", {}), ("sing", {})], "ok")
    async with robot_stage(brain, duplicates={"patrol": "reject", "sing": "allow"}) as (made, robot):
        said = await made.say("go")
        await made.until("assistant", "ok")
        assert robot.log_ == ["patrol a begins", "sing a begins", "sing hall begins"]
        robot.done.set()
        await said.result()


CALL_TOOLS = {"list_calls", "cancel_call"}


@pytest.mark.feature("E3")
@pytest.mark.parametrize("always", [False, True])
@pytest.mark.virtual_time
async def test_calls_can_be_listed_and_cancelled_while_something_runs(always: bool) -> None:
    def cancel(request: ModelRequest) -> Any:
        listed = last(request).text
        return [("cancel_call", {"call_id": listed.split(":")[0], "reason": "enough"})]

    brain = Brain([("follow", {"who": "Ann"})], [("list_calls", {})], cancel, "waiting", "over")
    async with robot_stage(brain, call_tools_always=always) as (made, _):
        assert (await (await made.say("go")).result())["text"] == "over"
        offered = [brain.offered(number) >= CALL_TOOLS for number in range(5)]
        assert offered == ([True] * 5 if always else [False, True, True, True, False])
        assert results(made)[1].endswith(': follow(who="Ann") - following Ann')
        assert "was asked to end" in results(made)[2]
        (close,) = [entry for entry in made.entries("event") if entry.event and entry.event.type == "close"]
        assert close.event is not None
        assert close.event.outcome is Outcome.CANCELLED
        assert "enough" in close.text
        assert made.agent.core.calls.known.open == ()


@pytest.mark.feature("E3")
@pytest.mark.virtual_time
async def test_only_calls_that_run_can_be_cancelled() -> None:
    brain = Brain([("cancel_call", {"call_id": "nonsense"}), ("list_calls", {})], "ok")
    async with robot_stage(brain) as (made, _):
        await (await made.say("go")).result()
        assert results(made) == ["no call with the id 'nonsense' runs (running: none)", "No call runs."]


@pytest.mark.virtual_time
async def test_pictures_of_results_reach_the_model() -> None:
    from dimos_streams.skill import Call
    from dimos_streams.testing import mock_skill
    from tests.agent.policies.robot_stage import Robot

    async def photograph(call: Call, arguments: Any) -> Any:
        return {"seen": "a cat", "picture": "data:image/jpeg;base64,AAEC"}

    brain = Brain([("look", {})], "a cat")
    with mock_skill(Robot, "look", behaviour=photograph):
        async with robot_stage(brain) as (made, _):
            await (await made.say("look")).result()
            seen = last(brain.requests[1])
            assert isinstance(seen, ToolResultMessage)
            assert [image.data for image in seen.images] == [b"\x00\x01\x02"]
            assert "[a picture]" in seen.text
            assert "base64" not in seen.text


@pytest.mark.virtual_time
async def test_what_waits_is_let_go_when_the_agent_stops() -> None:
    brain = Brain([("drop", {}), ("walk", {})], "ok")
    async with robot_stage(brain) as (made, robot):
        await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
    assert robot.log_ == []
    assert made.agent.core.gate_state.approvals.pending() == []
    assert not [task for task in asyncio.all_tasks() if "turn" in task.get_name()]
