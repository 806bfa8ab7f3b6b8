"""Approvals: asked, decided once, and nobody left waiting."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.policies.approval import Decision
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.gates.settings import ApprovalSettings
from dimos_streams.errors import ConflictError, SkillError
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.agent.policies.brain import Brain
from tests.agent.policies.gate_inputs import Events
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.bridge.scene import event
from tests.helpers import until


def book(events: Events | None = None, **settings: Any) -> ApprovalRegistry:
    return ApprovalRegistry(ApprovalSettings(**settings), (events or Events()).emit, agent="agent")


async def asked(
    made: ApprovalRegistry, arguments: Mapping[str, Any], **more: Any
) -> tuple[asyncio.Task[Decision], str]:
    """A waiter, and the id of the approval that it waits for."""
    known = {view.id for view in made.pending()}
    task = asyncio.create_task(made.ask("drop", arguments, missions=("m",), **more))
    await asyncio.sleep(0)
    return task, next((view.id for view in made.pending() if view.id not in known), "")


@pytest.mark.virtual_time
async def test_every_way_out_wakes_the_waiter() -> None:
    events = Events()
    made = book(events, timeout_s=10)
    for decision, approved in (("approve", True), ("reject", False), ("delete", False)):
        task, id = await asked(made, {"n": decision})
        view = made.decide(id, decision, reason="so")  # type: ignore[arg-type]
        assert (await task).approved is approved
        assert (await task).reason == "so"
        assert made.decide(id, decision, reason="once more") == view  # type: ignore[arg-type]
        with pytest.raises(SkillError, match=rf"{id}.* is {view.state} already \(so\): it can't be "):
            made.decide(id, "approve" if not approved else "reject")
        assert (await task).approved is approved
    task, id = await asked(made, {"n": 0})
    assert made.pending()[0].expires_utime is not None
    assert await task == Decision(approved=False, arguments={"n": 0}, reason="nobody decided in time")
    with pytest.raises(SkillError, match=r"is timed out already \(nobody decided in time\): it can't be approved"):
        made.decide(id, "approve")
    assert made.pending() == []
    assert events.kinds() == ["approval_created", "approval_decided"] * 4


@pytest.mark.virtual_time
async def test_a_night_in_which_the_machine_sleeps_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = book(timeout_s=10)
    task, id = await asked(made, {})
    monkeypatch.setattr(clock, "steady", lambda: clock.monotonic() + 8 * 3600)
    with pytest.raises(SkillError, match=r"is timed out already \(nobody decided in time\): it can't be approved"):
        made.decide(id, "approve")
    assert not (await task).approved


@pytest.mark.virtual_time
async def test_a_decision_in_the_instant_of_creation_counts() -> None:
    events = Events()
    made: ApprovalRegistry

    def emit(kind: str, missions: Sequence[str] = (), *phase: Any, **data: Any) -> None:
        events.emit(kind, missions, **data)
        if kind == "approval_created":
            made.decide(data["approval"]["id"], "approve")

    made = ApprovalRegistry(ApprovalSettings(), emit)
    assert (await made.ask("drop", {})).approved
    assert events.kinds() == ["approval_created", "approval_decided"]


@pytest.mark.virtual_time
async def test_the_same_call_asks_once_and_changed_arguments_ask_again() -> None:
    made = book()
    first, id = await asked(made, {"a": 1, "b": 2})
    duplicate, none = await asked(made, {"b": 2, "a": 1.0})
    assert none == ""
    other, other_id = await asked(made, {"a": 1, "b": 3})
    made.decide(id, "approve")
    made.decide(other_id, "reject", reason="too many")
    assert (await first).approved
    assert (await duplicate).approved
    assert (await made.ask("drop", {"a": 1, "b": 2}, missions=("m",))).approved
    assert (await made.ask("drop", {"a": 1, "b": 3}, missions=("m",))).reason == "too many"
    again, id = await asked(made, {"a": 1, "b": 4})
    assert id
    elsewhere = asyncio.create_task(made.ask("drop", {"a": 1, "b": 2}, missions=("m2",)))
    await asyncio.sleep(0)
    assert len(made.pending()) == 2
    made.close()
    assert not (await again).approved
    assert not (await elsewhere).approved
    assert not (await other).approved


@pytest.mark.virtual_time
async def test_changed_arguments_are_checked_and_what_was_changed_is_asked_again() -> None:
    def check(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(arguments.get("n"), int):
            raise SkillError("n: is no number")
        return arguments

    events = Events()
    made = book(events)
    task, id = await asked(made, {"n": 1}, check=check)
    with pytest.raises(SkillError, match="n: is no number"):
        made.decide(id, "approve", {"n": "x"})
    with pytest.raises(SkillError, match="n: is no number"):
        made.amend(id, {})
    assert made.amend(id, {"n": 2}).arguments == {"n": 2}
    assert not task.done()
    made.decide(id, "approve", {"n": 3})
    assert made.decide(id, "approve") == made.decide(id, "approve", {"n": 3}) == made.amend(id, {"n": 3})
    refused = r"drop\(n=3\) is approved already: it can't become drop\(n=4\)"
    with pytest.raises(SkillError, match=refused):
        made.decide(id, "approve", {"n": 4})
    with pytest.raises(SkillError, match=refused):
        made.amend(id, {"n": 4})
    assert await task == Decision(approved=True, arguments={"n": 3}, changed=True)
    assert events.kinds() == ["approval_created", *["approval_changed"] * 2, "approval_decided"]
    again, id = await asked(made, {"n": 1}, check=check)
    assert id
    made.decide(id, "delete")
    assert not (await again).approved
    with pytest.raises(SkillError, match="no approval has the id 'nonsense'"):
        made.decide("nonsense", "approve")


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "asked_for", ["ls  # no more\nrm -r /", "ls # no more\u202e rm -r /", "ls # no more   rm -r /"]
)
async def test_what_an_operator_changes_and_nobody_sees_is_changed_all_the_same(asked_for: str) -> None:
    made, wanted = book(), {"n": "ls # no more rm -r /"}
    task, id = await asked(made, {"n": asked_for})
    assert made.decide(id, "approve", wanted).arguments == wanted
    with pytest.raises(ConflictError, match="it can't become"):
        made.decide(id, "approve", {"n": asked_for})
    assert await task == Decision(approved=True, arguments=wanted, changed=True)
    task, id = await asked(made, {"n": asked_for})
    assert made.amend(id, wanted).revision == 2
    made.close()
    assert not (await task).approved


@pytest.mark.virtual_time
async def test_who_approves_names_the_revision_that_he_saw() -> None:
    made = book()
    task, id = await asked(made, {"n": 1})
    assert made.pending()[0].revision == 1
    assert made.amend(id, {"n": 2}, revision=1).revision == 2
    assert made.amend(id, {"n": 2}, revision=1).revision == 2, "said twice, and it holds"
    for revision in (1, 3):
        for decision, arguments in (("approve", None), ("approve", {"n": 3}), ("reject", None)):
            says = rf"has revision 2, not {revision}: drop\(n=2\) waits; .*{id}@2"
            with pytest.raises(ConflictError, match=says) as no:
                made.decide(id, decision, arguments, revision=revision)  # type: ignore[arg-type]
            assert (no.value.result.revision, no.value.result.arguments) == (2, {"n": 2})
        with pytest.raises(ConflictError, match="revision 2"):
            made.amend(id, {"n": 3}, revision=revision)
    await asyncio.sleep(0)
    assert not task.done()
    assert made.decide(id, "approve", {"n": 4}, revision=2).revision == 3
    assert made.decide(id, "approve", {"n": 4}, revision=2).state == "approved", "the same, when the answer got lost"
    with pytest.raises(ConflictError, match=r"revision 3, not 2: drop\(n=4\) is approved already"):
        made.decide(id, "approve", revision=2)
    assert (await task).arguments == {"n": 4}
    _, id = await asked(made, {"n": 5})
    made.amend(id, {"n": 6})
    assert made.decide(id, "approve").arguments == {"n": 6}, "who names none means whatever waits"


@pytest.mark.virtual_time
async def test_a_waiter_that_goes_away_takes_the_question_with_it() -> None:
    made = book()
    task, id = await asked(made, {})
    duplicate, _ = await asked(made, {})
    task.cancel()
    await asyncio.sleep(0)
    assert [view.id for view in made.pending()] == [id]
    duplicate.cancel()
    await asyncio.wait([task, duplicate])
    assert made.pending() == []
    with pytest.raises(SkillError, match=r"is deleted already \(nobody waits for it any more\)"):
        made.decide(id, "approve")


@pytest.mark.virtual_time
async def test_an_approval_is_for_the_module_that_was_shown() -> None:
    made = book()
    task, id = await asked(made, {}, module="arm")
    made.decide(id, "approve")
    assert (await task).approved
    again, id = await asked(made, {}, module="arm")
    assert (await again).approved
    other, id = await asked(made, {}, module="crane")
    made.decide(id, "reject")
    assert not (await other).approved


@pytest.mark.virtual_time
async def test_more_than_allowed_are_denied_at_once() -> None:
    made = book(max_pending=2)
    tasks = [(await asked(made, {"n": n}))[0] for n in range(3)]
    assert "2 approvals are pending" in (await tasks[2]).reason
    made.close()
    made.close()
    await asyncio.wait(tasks)


@pytest.mark.virtual_time
async def test_what_the_loss_of_the_console_means() -> None:
    abort = book(on_console_loss="abort")
    task, _ = await asked(abort, {})
    abort.console(present=False)
    assert "console" in (await task).reason
    assert "console" in (await abort.ask("drop", {})).reason
    abort.console(present=True)
    task, _ = await asked(abort, {"n": 1})
    abort.close()

    hold = book(on_console_loss="hold", timeout_s=10)
    first, _ = await asked(hold, {"n": 1})
    await asyncio.sleep(6)
    hold.console(present=False)
    second, _ = await asked(hold, {"n": 2})
    await asyncio.sleep(100)
    assert [view.expires_utime for view in hold.pending()] == [None, None]
    hold.console(present=True)
    await asyncio.sleep(5)
    assert first.done()
    assert not second.done()
    await asyncio.sleep(6)
    assert second.done()

    go_on = book(timeout_s=10)
    task, _ = await asked(go_on, {})
    go_on.console(present=False)
    await asyncio.sleep(11)
    assert task.done()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.virtual_time
async def test_no_sequence_strands_a_waiter_or_decides_twice(seed: int) -> None:
    """500 random steps each: every waiter ends, each approval is decided once and its waiters agree on it."""

    rng = random.Random(seed)
    events = Events()
    made = book(events, timeout_s=rng.choice([None, 3.0]), on_console_loss=rng.choice(["continue", "hold", "abort"]))
    waiters: list[asyncio.Task[Decision]] = []
    ids: list[str] = ["none"]
    for _ in range(500):
        step = rng.choice(["ask", "ask", "decide", "decide", "amend", "cancel", "console", "wait", "yield"])
        if step == "ask":
            arguments = {"n": rng.randrange(8)}
            missions = (rng.choice(["a", "b"]),)
            waiters.append(asyncio.create_task(made.ask("drop", arguments, missions=missions)))
        elif step in ("decide", "amend"):
            ids += [view.id for view in made.pending()]
            try:
                if step == "decide":
                    made.decide(rng.choice(ids[-20:]), rng.choice(["approve", "reject", "delete"]))
                else:
                    made.amend(rng.choice(ids[-20:]), {"n": rng.randrange(8)})
            except SkillError:
                pass
        elif step == "cancel" and waiters:
            rng.choice(waiters).cancel()
        elif step == "console":
            made.console(present=rng.random() < 0.6)
        elif step == "wait":
            await asyncio.sleep(rng.random())
        else:
            await asyncio.sleep(0)
    made.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    made.close()
    await asyncio.wait(waiters, timeout=1)
    assert all(waiter.done() for waiter in waiters)
    assert made.pending() == []
    decided = [data["approval"]["id"] for kind, data in events.all if kind == "approval_decided"]
    created = [data["approval"]["id"] for kind, data in events.all if kind == "approval_created"]
    assert sorted(decided) == sorted(created)
    assert len(set(decided)) == len(decided)


@pytest.mark.virtual_time
async def test_an_approval_says_which_call_has_begun_by_it_and_how_that_has_ended() -> None:
    brain = Brain([("drop", {"what": "a box"})], "dropped")
    async with robot_stage(brain) as (made, _):
        said = await made.say("drop it")
        asked = await decide(made, "approve")
        await said.result()
        (view,) = made.agent.core.gate_state.approvals.find(asked["id"])
        assert (view.state, bool(view.call_id), view.call_end) == ("approved", True, "completed: dropped a box")


@pytest.mark.virtual_time
async def test_what_an_operator_has_ended_is_asked_again_and_what_the_agent_has_ended_is_not() -> None:
    follow = ("follow", {"who": "ann"})
    brain = Brain([follow], "on it", [follow], [("cancel_call", {"call_id": "all"})], "enough", [follow], "done")
    async with robot_stage(brain, approval={"rules": [{"skill": "follow"}]}) as (made, robot):
        said = await made.say("follow ann")
        first = await decide(made, "approve")
        await until(lambda: bool(made.agent.core.calls.known.open) and len(brain.requests) == 2)
        (call,) = made.agent.core.calls.known.open
        await made.bridge.broker.cancel(call.call_id, "no further")
        again = await decide(made, "approve")
        assert again["id"] != first["id"]
        await until(lambda: len(brain.requests) == 7)
        robot.done.set()
        await said.closed()
        assert sum("following ann" in entry.text for entry in made.entries("tool")) == 3


@pytest.mark.virtual_time
@pytest.mark.parametrize("begun", ["c1", "c1~2", "c1~2~1"])
@pytest.mark.parametrize("is_heard_first", [False, True])
async def test_what_was_approved_as_a_part_of_a_call_that_was_ended_is_asked_again(
    begun: str, is_heard_first: bool
) -> None:
    made = book()
    task, id = await asked(made, {"n": 1})
    made.decide(id, "approve")
    assert (await task).approved
    close = event(2, "close", call_id="c1", data={"outcome": "cancelled"})
    if is_heard_first:
        made.decided.call_ended(close, by_agent=False)
    made.decided.call_begun("drop", {"n": 1}, ("m",), begun)
    if not is_heard_first:
        made.decided.call_ended(close, by_agent=False)
    task, id = await asked(made, {"n": 1})
    assert id
    made.close()
    assert not (await task).approved


@pytest.mark.virtual_time
async def test_who_ends_one_of_two_calls_that_an_approval_let_begin_is_asked_before_the_next() -> None:
    made = book()
    task, id = await asked(made, {"n": 1})
    made.decide(id, "approve")
    assert (await task).approved
    for call_id in ("c1", "c2"):
        made.decided.call_begun("drop", {"n": 1}, ("m",), call_id)
    made.decided.call_ended(event(2, "close", call_id="c1", data={"outcome": "cancelled"}), by_agent=False)
    (view,) = made.find(id)
    assert (view.call_id, view.call_end) == ("c2", ""), "the other one goes on"
    task, again = await asked(made, {"n": 1})
    assert again != id
    made.close()
    assert not (await task).approved


@pytest.mark.virtual_time
@pytest.mark.parametrize(("text", "is_asked"), [("enough", False), (f"{STOPPED}: wait", True)])
async def test_a_stop_of_the_robot_counts_also_for_a_call_that_the_agent_was_about_to_end(
    text: str, is_asked: bool
) -> None:
    made = book()
    task, id = await asked(made, {"n": 1})
    made.decide(id, "approve")
    assert (await task).approved
    made.decided.call_begun("drop", {"n": 1}, ("m",), "c1")
    made.decided.call_ended(event(2, "close", call_id="c1", text=text, data={"outcome": "cancelled"}), by_agent=True)
    task, again = await asked(made, {"n": 1})
    assert bool(again) is is_asked
    made.close()
    assert (await task).approved is not is_asked
