"""Skills that run others on the agent's behalf: the gates look at those too, and the conversation has only what was
called."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from dimos_streams.agent.loop import reviews
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.module import Module
from dimos_streams.skill import BASE, Call, skill
from dimos_streams.tool_stream.event import Outcome
from tests.agent.policies.brain import Brain
from tests.agent.policies.lookout_world import Holder, LookoutWorld, lookout_world
from tests.agent.stage import NoConfig
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K1")]


class Errands(Module):
    """Runs other skills, and another one of its own that does."""

    config: NoConfig

    @skill
    async def errand(self, call: Call, skill: str, arguments: dict[str, Any], quiet: bool = True) -> str:
        """Run something."""
        result = await call.skills.run(skill, arguments, quiet=quiet)
        return f"errand done: {result}"

    @skill
    async def brief(self, call: Call, skill: str, arguments: dict[str, Any], quiet: bool = True) -> str:
        """Run something for a moment."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(call.skills.run(skill, arguments, quiet=quiet), 5)
        return "that will do"

    @skill
    async def later(self, call: Call, skill: str, arguments: dict[str, Any], quiet: bool = True) -> str:
        """Run something in a moment."""
        await call.update("in a moment")
        await asyncio.sleep(1)
        return f"later: {await call.skills.run(skill, arguments, quiet=quiet)}"

    @skill(resources={BASE}, motion=True)
    async def tour(self, call: Call, stops: int) -> str:
        """Drive from stop to stop."""
        for _ in range(stops):
            await call.skills.run("walk", distance_m=1)
        return f"saw {stops} stops"

    @skill
    async def chatter(self, call: Call) -> str:
        """Say something in between."""
        for text in ("hm", "well"):
            await call.update(text)
            await asyncio.sleep(0.2)
        return "talked"


Calls = list[tuple[str, dict[str, Any]]]


def errand(skill: str, arguments: dict[str, Any], quiet: bool = True, *, by: str = "errand") -> Calls:
    return [(by, {"skill": skill, "arguments": arguments, "quiet": quiet})]


@pytest.mark.parametrize("quiet", [True, False])
async def test_the_conversation_has_nothing_of_a_child_but_what_its_parent_passes_on(quiet: bool) -> None:
    inner = {"skill": "chatter", "arguments": {}, "quiet": quiet}
    async with lookout_world(Brain(errand("errand", inner, quiet, by="later")), Errands(name="errands")) as w:
        await w.closed(await w.say())
        children = [view for view in await w.bridge.broker.calls() if "~" in view.call_id and view.caller == "agent"]
        assert sorted(view.skill for view in children) == ["chatter", "errand"]
        assert [view.text for view in children if view.outcome is not Outcome.COMPLETED] == []
        texts = [entry.text for entry in w.agent.conversation.entries]
        assert sum("later: errand done: talked" in text for text in texts) == 1
        assert [word for word in ("hm", "well") if any(word in text.split() for text in texts)] == (
            [] if quiet else ["hm", "well"]
        )
        opened = [event.data["skill"] for event in w.events if event.kind == "call_open"]
        assert opened == ["later"]
        ids = {view.call_id for view in children}
        assert not any(event.data.get("call_id") in ids for event in w.events)


async def test_of_an_approved_child_it_is_told_that_it_has_begun() -> None:
    async with lookout_world(Brain(errand("drop", {"what": "bag"})), Errands(name="errands")) as w:
        said = await w.say()
        await until(w.agent.core.gate_state.approvals.pending)
        (waits,) = w.agent.core.gate_state.approvals.pending()
        await w.operator("decide", approval=waits.id, decision="approve")
        await w.closed(said)
        (child,) = await w.views("drop")
        (approved,) = await w.operator("approvals", approval=waits.id)
        assert (approved["call_id"], approved["decided_by"]) == (child.call_id, "operator")


ASKS_BEFORE_FOLLOW = {"rules": [{"skill": "follow"}]}


@pytest.mark.parametrize("ended", ["follow", "errand"], ids=["itself", "what it is a part of"])
async def test_a_part_that_an_operator_has_ended_alone_is_asked_about_before_it_begins_again(ended: str) -> None:
    work = errand("errand", {"skill": "follow", "arguments": {}, "quiet": False}, by="errand")
    async with lookout_world(Brain(work, work), Errands(name="errands"), approval=ASKS_BEFORE_FOLLOW) as w:
        approvals = await approved_follow(w)
        part = next(view for view in await w.views(ended) if "~" in view.call_id)
        await w.bridge.broker.cancel(part.call_id, "wait")
        await until(approvals.pending)
        assert [view.skill for view in approvals.pending()] == ["follow"]


async def test_a_part_that_its_own_call_has_ended_begins_again_as_it_was_approved() -> None:
    work = errand("follow", {}, by="brief")
    async with lookout_world(Brain(work, work, "well"), Errands(name="errands"), approval=ASKS_BEFORE_FOLLOW) as w:
        approvals = await approved_follow(w)
        await until(lambda: len(w.bridge.broker.ledger.calls.open) == 0)
        assert [view.outcome for view in await w.views("follow")] == [Outcome.CANCELLED] * 2
        assert approvals.pending() == []


async def approved_follow(w: LookoutWorld) -> ApprovalRegistry:
    """Say something that leads to a call of ``follow``, approve it, and wait until it goes on."""
    await w.say()
    approvals = w.agent.core.gate_state.approvals
    await until(approvals.pending)
    await w.operator("decide", approval=approvals.pending()[0].id, decision="approve")
    await w.looking("follow")
    return approvals


async def test_an_agent_that_looks_for_its_calls_finds_no_children() -> None:
    brain = Brain(errand("take", {"seconds": 3}))
    async with lookout_world(brain, Errands(name="errands"), Holder(name="holder")) as w:
        said = await w.say()
        await w.looking("take")
        assert await w.agent.core.calls.reconciliation.adopt_open() == ()
        assert [call.skill for call in w.agent.core.calls.known.open] == ["errand"]
        await until(lambda: not w.agent.core.reviews._permitted)  # it has begun: nothing is held for it any more
        await w.closed(said)


async def test_where_too_many_permitted_calls_wait_one_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "_MAX_PERMITTED", 0)
    async with lookout_world(Brain(errand("walk", {"distance_m": 1})), Errands(name="errands")) as w:
        await w.closed(await w.say())
        (view,) = await w.views("errand")
        assert view.outcome is Outcome.FAILED
        assert "wait to begin" in view.text
        assert [each.outcome for each in await w.views("walk")] == [Outcome.REJECTED]


async def test_what_a_disabled_skill_does_is_not_done_by_way_of_another_one() -> None:
    async with lookout_world(
        Brain(errand("walk", {"distance_m": 1})), Errands(name="errands"), disabled_skills=["walk"]
    ) as w:
        await w.closed(await w.say())
        (view,) = await w.views("errand")
        assert view.outcome is Outcome.FAILED
        assert "disabled 'walk'" in view.text
        (child,) = await w.views("walk")
        assert (child.outcome, child.call_id) == (Outcome.REJECTED, f"{view.call_id}~1")
        assert w.robot.log_ == []


async def test_a_child_waits_while_the_agent_is_paused() -> None:
    brain = Brain(errand("walk", {"distance_m": 1}, by="later"))
    async with lookout_world(brain, Errands(name="errands")) as w:
        said = await w.say()
        await w.looking("later")
        await w.operator("pause")
        await asyncio.sleep(3)
        assert w.robot.log_ == []
        await w.operator("resume")
        await w.closed(said)
        assert w.robot.log_ == ["walk 1"]


@pytest.mark.slow
async def test_a_motion_that_was_permitted_may_have_parts() -> None:
    brain = Brain([("tour", {"stops": 4})])
    async with lookout_world(brain, Errands(name="errands"), plan={"motions": 1}) as w:
        await w.closed(await w.say())
        (view,) = await w.views("tour")
        assert (view.outcome, view.text) == (Outcome.COMPLETED, "saw 4 stops")
        assert w.robot.log_ == ["walk 1"] * 4
    brain = Brain([*errand("walk", {"distance_m": 1}), *errand("walk", {"distance_m": 2})])
    async with lookout_world(brain, Errands(name="errands"), plan={"motions": 1}) as w:
        await w.closed(await w.say())
        assert w.robot.log_ == ["walk 1"], "these are the errand's in name only"
