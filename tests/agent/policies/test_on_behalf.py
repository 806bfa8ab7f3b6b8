"""What a skill goes on with on the agent's behalf passes the same gates as what the agent's model asks for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.module import Bridge
from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import Module
from dimos_streams.skill import skill
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.agent.policies.brain import Brain
from tests.agent.policies.lookout_world import (
    Holder,
    Late,
    Undoable,
    lookout,
    lookout_world,
    round_with,
)
from tests.agent.stage import NoConfig
from tests.helpers import until

OPERATORS = [
    ("resume", {}),
    ("set_skill", {"skill": "walk", "enabled": True}),
    ("set_model", {"model": "offline"}),
    ("say", {"text": "walk 5"}),
    ("decide", {"approval": "x", "decision": "approve"}),
]


@pytest.mark.feature("A9")
@pytest.mark.virtual_time
async def test_what_a_lookout_goes_on_with_is_a_call_of_the_agent() -> None:
    async with lookout_world(Brain(lookout("go", by=2)), Undoable(name="undoable")) as w:
        said = await w.say()
        looking = await w.looking()
        w.appear()
        report = (await w.lookout_closed()).result
        await w.closed(said)
        (view,) = await w.views("go")
        assert (view.call_id, view.parent, view.caller) == (report["continued_as"], looking.call_id, "agent")
        assert any("at 2" in entry.text for entry in w.agent.conversation.entries)
        (review,) = await w.views("review_call")
        assert (review.state, review.caller) == ("closed", "bridge")
        opened = [event for event in w.events if event.kind == "call_open" and event.data["skill"] == "go"]
        assert [event.data["parent"] for event in opened] == [looking.call_id]
        undone = await w.operator("undo", count=1)
        assert [(one["skill"], one["how"]) for one in undone["undone"]] == [("go", "undone")]


@pytest.mark.feature("A9")
@pytest.mark.virtual_time
async def test_a_disabled_skill_is_not_gone_on_with() -> None:
    for ask in (lookout, round_with):
        async with lookout_world(Brain(ask("walk", distance_m=1)), disabled_skills=["walk"]) as w:
            said = await w.say()
            name = ask("walk")[0][0]
            await w.looking(name)
            w.appear()
            ended = await w.lookout_closed(name)
            assert ended.outcome is Outcome.FAILED
            assert "disabled 'walk'" in ended.text
            await w.closed(said)
            assert w.robot.log_ == []


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_zones_and_motions_without_a_plan_count_here_too() -> None:
    zone = {"name": "lab", "polygon": [[1, 1], [3, 1], [3, 3], [1, 3]]}
    async with lookout_world(Brain(lookout("go_to", x=2, y=2)), zones=[zone]) as w:
        await w.say()
        await w.looking()
        w.appear()
        assert "restricted zone 'lab'" in (await w.lookout_closed()).text
        assert w.robot.log_ == []
    first = [("walk", {"distance_m": 1})]
    async with lookout_world(Brain(first, lookout("walk", distance_m=2)), plan={"motions": 1}) as w:
        await w.say()
        await w.looking()
        w.appear()
        assert "1 motion of this mission has begun without a plan" in (await w.lookout_closed()).text
        assert w.robot.log_ == ["walk 1"]


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_motion_that_was_permitted_and_can_not_begin_uses_nothing_up() -> None:
    brain = Brain([*round_with("take", seconds=1), ("think", {"seconds": 1}), ("walk", {"distance_m": 1})])
    async with lookout_world(brain, Holder(name="holder"), plan={"motions": 1}) as w:
        holder = await w.call("take", seconds=3)
        await w.looking("take")
        said = await w.say()
        assert f": call '{holder}'" in (await w.lookout_closed("round")).text
        await w.closed(said)
        assert w.robot.log_ == ["walk 1"]


@pytest.mark.slow
@pytest.mark.feature("C5", "D5")
@pytest.mark.parametrize("decision", ["approve", "reject"])
@pytest.mark.virtual_time
async def test_the_operator_is_asked_and_the_decision_counts(decision: str) -> None:
    async with lookout_world(Brain(lookout("drop", what="bag"))) as w:
        await w.say()
        await w.looking()
        w.appear()
        waits = await w.waiting()
        assert waits.state == "open"
        assert w.robot.log_ == []
        (approval,) = await w.operator("approvals")
        assert (approval["skill"], approval["arguments"]) == ("drop", {"what": "bag"})
        assert waits.call_id in approval["reason"]
        assert approval["missions"]
        changed = {"arguments": {"what": "box"}} if decision == "approve" else {"reason": "Mind the cat."}
        await w.operator("decide", approval=approval["id"], decision=decision, **changed)
        ended = await w.lookout_closed()
        if decision == "approve":
            await w.view("drop", lambda view: view.state == "closed")
            assert w.robot.log_ == ["drop box"]
            await until(lambda: any("changed the arguments" in entry.text for entry in w.agent.conversation.entries))
        else:
            assert w.robot.log_ == []
            assert "Mind the cat." in ended.text


@pytest.mark.slow
@pytest.mark.feature("B3")
@pytest.mark.parametrize("ask", [lookout, round_with])
@pytest.mark.virtual_time
async def test_while_paused_it_waits_and_begins_after_that(ask: Callable[..., Any]) -> None:
    async with lookout_world(Brain(ask("walk", distance_m=1))) as w:
        name = ask("walk")[0][0]
        if ask is round_with:
            await w.operator("step", mode="on")  # so that it comes to the pause while it waits
        await w.say()
        if ask is round_with:
            await until(lambda: w.agent.core.control.waiting)
            await w.operator("step")
        await w.looking(name)
        await w.operator("pause")
        w.appear()
        await asyncio.sleep(60)
        assert w.robot.log_ == []
        assert await w.views("walk") == []
        assert (await w.looking(name)).state == "open"
        await w.operator("resume")
        assert (await w.lookout_closed(name)).outcome is Outcome.COMPLETED
        await w.view("walk", lambda view: view.state == "closed")
        assert w.robot.log_ == ["walk 1"]


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_a_pause_between_the_permission_and_the_beginning_holds_it() -> None:
    # The first one takes 0.3 s to end, for which the new one waits once it is permitted.
    async with lookout_world(Brain([("patrol", {"where": "hall"})], round_with("patrol", where="yard"))) as w:
        await w.say()
        await w.view("review_call", lambda view: view.answer == "may begin")
        assert w.agent.core.control.pause()
        await w.closed((await w.looking("patrol")).call_id)
        await asyncio.sleep(5)
        assert w.robot.log_ == ["patrol hall begins", "patrol hall ends"]
        await w.operator("resume")
        await w.lookout_closed("round")
        await until(lambda: w.robot.log_[-1] == "patrol yard begins")


@pytest.mark.feature("B4")
@pytest.mark.virtual_time
async def test_step_mode_shows_it() -> None:
    async with lookout_world(Brain(lookout("walk", distance_m=1))) as w:
        await w.say()
        looking = await w.looking()
        await w.operator("step", mode="on")
        w.appear()
        await w.waiting()
        (waiting,) = w.agent.core.control.waiting
        assert (waiting.skill, waiting.arguments, waiting.parent) == ("walk", {"distance_m": 1}, looking.call_id)
        shown = [e.data for e in w.events if e.kind == "step" and e.data["phase"] == "waits"]
        assert [(data["skill"], data["parent"]) for data in shown] == [("walk", looking.call_id)]
        assert w.robot.log_ == []
        assert await w.operator("step") == "walk(distance_m=1) goes"
        await w.lookout_closed()
        await until(lambda: w.robot.log_ == ["walk 1"])


@pytest.mark.slow
@pytest.mark.feature("B5")
@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("how", ["abort", "cancel"])
@pytest.mark.virtual_time
async def test_nothing_begins_of_what_was_aborted_while_it_waited(stubborn: bool, how: str) -> None:
    async with lookout_world(Brain(round_with("drop", what="bag", stubborn=stubborn))) as w:
        said = await w.say()
        await until(lambda: w.agent.core.gate_state.approvals.pending())
        if how == "abort":
            report = await w.operator("abort")
            assert len(report["cancelled"]) == 1
        else:
            await w.bridge.broker.cancel(said, "changed my mind")
        await w.closed(said)
        await until(lambda: not w.agent.core.gate_state.approvals.pending())
        review = await w.view("review_call", lambda view: view.state == "closed")
        assert review.outcome is not Outcome.COMPLETED
        await asyncio.sleep(10)
        if w.agent.core.control.paused:
            await w.operator("resume")
        await asyncio.sleep(1)
        assert w.robot.log_ == []
        assert [view.outcome for view in await w.views("drop")] in ([], [Outcome.REJECTED])
        assert await w.bridge.broker.calls(open_only=True) == []


@pytest.mark.feature("A9", "B8")
@pytest.mark.parametrize(("name", "arguments"), OPERATORS, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.virtual_time
async def test_operators_skills_are_out_of_reach(name: str, arguments: dict[str, Any]) -> None:
    brain = Brain(lookout(name, **arguments), round_with(name, **arguments), "no way")
    async with lookout_world(brain) as w:
        w.appear()
        await w.closed(await w.say())
        asked = await w.lookout_closed()
        assert "is for operators" in asked.text
        assert asked.last_seq == 2, "refused at once, before any lookout"
        assert "is for operators" in (await w.lookout_closed("round")).text
        begun = [view for view in await w.views(name) if view.outcome is not Outcome.REJECTED]
        assert [view.caller for view in begun] == (["operator"] if name == "say" else [])
        for caller in ("agent", "mcp/claude/x"):
            with pytest.raises(CallRejectedError):
                await w.bridge.broker.call(name, arguments, caller=caller, idempotency_key=f"{caller}/1")


@pytest.mark.virtual_time
async def test_an_operators_skill_that_appears_later_is_out_of_reach_too() -> None:
    class Plain(Module):
        """Has a skill of the same name, which is for everyone."""

        config: NoConfig

        @skill
        async def salute(self) -> str:
            """Salute."""
            raise AssertionError("nobody may come here")

    plain = Plain(name="plain")
    async with lookout_world(Brain(lookout("salute")), plain) as w:
        await w.say()
        await w.looking()
        await w.remove("plain")
        await w.add(Late(name="late"))
        await asyncio.sleep(2 * ALIVE_S)  # of modules that live, the one that was there first is called
        w.appear()
        ended = await w.lookout_closed()
        assert ended.outcome is Outcome.FAILED
        assert "'salute' is for operators" in ended.text


@pytest.mark.virtual_time
async def test_a_call_in_an_agents_name_is_the_agents_own() -> None:
    async with lookout_world(Brain()) as w:
        with pytest.raises(CallRejectedError, match="'agent' is the name of an agent"):
            await w.bridge.broker.call("walk", {}, caller="agent")
        with pytest.raises(CallRejectedError, match="'bridge' is the name of a bridge itself"):
            await w.bridge.broker.call("walk", {}, caller="bridge")
        arguments = {"call_id": "x", "parent": "y", "skill": "walk", "arguments": {}}
        with pytest.raises(CallRejectedError, match="for the bridge alone"):
            await w.bridge.broker.call("review_call", arguments, caller="operator")
        assert "review_call" not in {skill.name for skill in await w.bridge.broker.skills()}
        assert w.robot.log_ == []


@pytest.mark.feature("B6")
@pytest.mark.virtual_time
async def test_an_agent_takes_back_its_own_calls_and_no_others() -> None:
    async with lookout_world(Brain([("go", {"by": 2})]), Undoable(name="undoable")) as w:
        await w.closed(await w.say())
        given = {"arguments": {"by": 3}}
        with pytest.raises(CallRejectedError, match="'go_back' is for operators"):
            await w.bridge.broker.call("go_back", given, caller="agent", idempotency_key="agent/x")
        assert [one["how"] for one in (await w.operator("undo", count=1))["undone"]] == ["undone"]


@pytest.mark.feature("B6")
@pytest.mark.virtual_time
async def test_who_watches_an_agent_does_not_keep_it_from_taking_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.ledger._KEPT_CLOSED", 4)
    async with lookout_world(Brain([("go", {"by": 2})]), Undoable(name="undoable")) as w:
        await w.closed(await w.say())
        for _ in range(10):
            await w.operator("approvals")
        assert [one["how"] for one in (await w.operator("undo", count=1))["undone"]] == ["undone"]


@pytest.mark.virtual_time
async def test_an_operators_own_chain_asks_no_agent() -> None:
    async with lookout_world(Brain(), disabled_skills=["walk"]) as w:
        assert (await w.operator("round", skill="walk", arguments={"distance_m": 1})).startswith("began ")
        await until(lambda: w.robot.log_ == ["walk 1"])
        assert await w.views("review_call") == []
        refused = await w.closed(await w.call("round", skill="resume", arguments={}))
        assert "is for operators" in refused.text


@pytest.mark.virtual_time
async def test_a_call_that_was_asked_to_end_begins_nothing_more() -> None:
    async with lookout_world(Brain()) as w:
        parting = await w.call("part", skill="walk")
        await w.looking("part")
        await w.bridge.broker.cancel(parting, "enough")
        assert "was asked to end: enough" in (await w.closed(parting)).text
        assert w.robot.log_ == []


@pytest.mark.virtual_time
async def test_an_agent_that_is_gone_permits_nothing() -> None:
    async with lookout_world(Brain(round_with("drop", what="bag"), lookout("walk"))) as w:
        await w.say()
        await until(lambda: w.agent.core.gate_state.approvals.pending())
        w.buses["agent"].partitioned = True  # as a process that is killed
        ended = await w.lookout_closed("round")
        assert "agent 'agent', for whom 'drop' was to begin," in ended.text
        assert w.robot.log_ == []


@pytest.mark.feature("A4", "B3")
@pytest.mark.virtual_time
async def test_a_call_that_waits_outlives_its_bridge_and_begins_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    async with lookout_world(Brain(round_with("drop", what="bag")), journal=path) as w:
        await w.say()
        await until(lambda: w.agent.core.gate_state.approvals.pending())
        (first,) = w.agent.core.gate_state.approvals.pending()
        await w.remove("bridge")
        w.bridge = Bridge({"http": False, "journal": path}, name="bridge", context=w.bridge.context)
        await w.add(w.bridge)
        await until(lambda: [view for view in w.agent.core.gate_state.approvals.pending() if view.id != first.id])
        await until(lambda: len(w.agent.core.gate_state.approvals.pending()) == 1)
        (second,) = await w.operator("approvals")
        await w.operator("decide", approval=second["id"], decision="approve")
        assert (await w.lookout_closed("round")).outcome is Outcome.COMPLETED
        await asyncio.sleep(3)
        assert w.robot.log_ == ["drop bag"]
        assert {view.state for view in await w.views("review_call")} == {"closed"}


@pytest.mark.virtual_time
async def test_what_a_sub_agent_may_not_call_it_does_not_go_on_with() -> None:
    helper = {"description": "helps", "prompt": "helper", "skills": ["round", "look"]}
    brain = Brain(
        [("delegate", {"agent": "helper", "task": "go round"})],
        helper=[[*round_with("walk", distance_m=1), *round_with("look")], ""],
    )
    async with lookout_world(brain, agents={"helper": helper}) as w:
        await w.closed(await w.say())
        ended = {view.arguments["skill"]: view for view in await w.views("round")}
        assert "'walk' is none of your skills" in ended["walk"].text
        assert ended["look"].outcome is Outcome.COMPLETED
        assert w.robot.log_ == []


@pytest.mark.virtual_time
async def test_a_stopped_lookout_begins_nothing_though_it_waits() -> None:
    async with lookout_world(Brain(lookout("drop", what="bag"))) as w:
        await w.say()
        await w.looking()
        w.appear()
        await w.waiting()
        assert await w.operator("stop_looking_out") == "Stopped looking out for man in red"
        await until(lambda: not w.agent.core.gate_state.approvals.pending())
        assert (await w.lookout_closed()).outcome is Outcome.CANCELLED
        await asyncio.sleep(3)
        assert w.robot.log_ == []


@pytest.mark.virtual_time
async def test_what_a_skill_says_of_its_caller_does_not_count() -> None:
    async with lookout_world(Brain(lookout("walk")), disabled_skills=["walk"]) as w:
        await w.say()
        parent = (await w.looking()).call_id

        async def refused(parent: str, call_id: str) -> ToolEvent:
            message = SkillCall(call_id=call_id, skill="walk", caller="operator", parent=parent)
            w.harness.bus.publish(CALLS, encode(message))
            async with asyncio.timeout(5):
                while True:
                    for event in w.harness.events():
                        if event.call_id == call_id and event.type == "close":
                            return event
                    await asyncio.sleep(0.05)

        event = await refused(parent, "forged-1")
        assert (event.outcome, event.caller) == (Outcome.REJECTED, "agent")
        assert "disabled 'walk'" in event.text
        assert "is not known" in (await refused("nobody", "forged-2")).text
        assert "names no call that it comes from" in (await refused("", "forged-3")).text
        assert w.robot.log_ == []


@pytest.mark.virtual_time
async def test_a_call_that_the_agent_does_not_know_yet_is_waited_for_a_while() -> None:
    """What its skill asks for may be heard of before the call itself."""
    async with lookout_world(Brain(lookout("walk"))) as w:
        began = clock.monotonic()
        assert await w.agent.core.calls.known.find("of nobody", 3.0) is None
        assert clock.monotonic() - began == pytest.approx(3.0, abs=0.1)
        await w.say()
        looking = (await w.looking()).call_id
        found = await w.agent.core.calls.known.find(looking, 3.0)
        assert (found.call_id if found else None) == looking
