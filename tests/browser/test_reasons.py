"""Why something was not done, as programs write it for models, is said to people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dimos_streams.agent.context.render import own_text
from dimos_streams.agent.control.reports import Undone, UndoReport
from dimos_streams.agent.missions.end_reasons import explained
from dimos_streams.agent.policies.approval import Approval, Decision
from dimos_streams.agent.policies.approval_texts import denial, request_text
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.gates.settings import ApprovalSettings
from dimos_streams.errors import ConflictError
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.messages.hold import PauseReport
from tests.agent.policies.gate_inputs import Events
from tests.bridge.serving import Served
from tests.browser.script_modules import ScriptModules

_TEXT = '(reasons, text) => reasons.reasonText(text, "r")'
BUSY = "'r_turn' needs 'r/base', which 'r_follow_person' holds for 'r/agent' (following ann): call 'de68'"
DRIVES = "Follow person drives the robot now (following ann). It has to end first: cancel it, or say stop."
_MODEL = "model 'm' at http://h/v1: the connection failed: ConnectError: All connection attempts failed"
_CANT = "The language model can\u2019t be asked: All connection attempts failed (m at http://h/v1)"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (BUSY, DRIVES),
        (BUSY.replace("r/base", "r/arm"), DRIVES.replace("drives the robot", "uses \u201cr/arm\u201d")),
        (
            "'r_patrol' runs already as call '1f' of 'r/agent' (round 2). Repeat the call with on_duplicate='allow'",
            "Patrol runs already, for r/agent. It has to end first: cancel it, or say stop.",
        ),
        (
            "Not run: go_to(x=2.0) was not approved: too far. Do not repeat it as it is.",
            "An operator did not approve it: too far.",
        ),
        (f"the mission did not complete: call_failed (r_turn: {BUSY})", f"Not done: Turn: {DRIVES}"),
        (
            "the mission did not complete: call_cancelled (r_turn: cancelled by the operator)",
            "Not done: Turn: cancelled by the operator",
        ),
        ("the mission did not complete: max_iterations", "Not done: max iterations"),
        (f"the mission did not complete: error (the model failed: {_MODEL})", f"Not done: {_CANT}"),
        (f"The model is asked again in 5.2 s: {_MODEL}", f"{_CANT}. It is asked again in 5.2 s."),
        (
            "nobody has acknowledged this call for 2 s, so it was ended and the robot was stopped",
            "Nobody listened to it for 2 s, as if the connection were lost: it was ended and the robot was stopped.",
        ),
        ("it is paused already, held by r/gate", "it is paused already, r stands still"),
        ("the robot is held by gate", "the robot stood still"),
        (
            "every robot is stopped, held by a/g, b/g; 1 call has ended",
            "every robot is stopped, a and b stand still; 1 call has ended",
        ),
        ("Waits for an operator's decision: go_to()", "Waits for an operator\u2019s approval."),
        (
            "the mission did not complete: stopped (an operator has stopped the robot: on the operator's page)",
            "Not done: an operator has stopped the robot: on the operator's page",
        ),
        (
            "call aea758 was running: the operator has aborted the mission",
            "It was running: the operator has aborted the mission",
        ),
        ("the operator has withdrawn what led to this call", "its mission was cancelled by the operator"),
        (
            "call aea758 was running: the operator has withdrawn this",
            "It was running: its mission was cancelled by the operator",
        ),
        ("no such person", "no such person"),
    ],
)
def test_why_something_was_not_done_is_explained_to_people(
    script_modules: ScriptModules, written: str, said: str
) -> None:
    assert script_modules("reasons.js", _TEXT, written) == said


def test_what_the_bridge_writes_is_understood(script_modules: ScriptModules, bridge: Served) -> None:
    refused = []
    try:
        bridge.call("follow", wait="answer", description="ann")
        bridge.post("/calls", {"skill": "patrol", "caller": "me"})
        for skill, arguments in (("at_once", {"value": 1}), ("patrol", {})):
            answer = bridge.post("/calls", {"skill": skill, "arguments": arguments, "caller": "me"})
            refused.append(script_modules("reasons.js", _TEXT, answer.json()["detail"]))
    finally:
        bridge.post("/calls/cancel", {"reason": "the test is over"})
    follow, patrol = refused
    assert follow.startswith("Follow drives the robot now (")
    assert follow.endswith("). It has to end first: cancel it, or say stop.")
    assert patrol == "Patrol runs already, for me. It has to end first: cancel it, or say stop."


def test_why_a_decision_was_refused_is_understood(script_modules: ScriptModules) -> None:
    async def refusals() -> list[str]:
        book = ApprovalRegistry(ApprovalSettings(), Events().emit)
        asking = asyncio.create_task(book.ask("go_to", {"x": 1}, module="nav"))
        await asyncio.sleep(0)
        id = book.pending()[0].id
        book.amend(id, {"x": 2})
        first = refused(lambda: book.decide(id, "approve", revision=1))
        book.decide(id, "reject", reason="too far (for now)", by="cli")
        await asking
        return [first, *map(refused, (lambda: book.decide(id, "approve"), lambda: book.amend(id, {})))]

    with ThreadPoolExecutor(1) as beside:  # the browser's loop runs in this thread
        written = beside.submit(lambda: asyncio.run(refusals())).result()
    outcome = "(store, text) => store.outcome({ type: 'error', text })"
    said = [script_modules("event_texts.js", outcome, each) for each in written]
    assert said[0] == "An operator has changed it meanwhile: look at it again, then decide."
    assert said[1:] == ["It was rejected already, by cli: too far (for now)."] * 2


def refused(change: Callable[[], object]) -> str:
    with pytest.raises(ConflictError) as refusal:
        change()
    return str(refusal.value)


def test_what_agents_write_is_understood(script_modules: ScriptModules) -> None:
    loop = asyncio.new_event_loop()
    undecided: asyncio.Future[None] = loop.create_future()
    loop.close()
    approval = Approval(
        id="a",
        skill="go_to",
        module="nav",
        asked={},
        arguments={"x": 2.0},
        reason="far",
        missions=(),
        check=lambda arguments: arguments,
        decided=undecided,
        created_utime=0,
    )
    decision = Decision(approved=False, arguments=approval.arguments, reason="too far")
    written = [denial("go_to", approval.arguments, decision), request_text(approval), explained("max_iterations", "")]
    denied, waits, ended = (script_modules("reasons.js", _TEXT, text) for text in written)
    assert denied == "An operator did not approve it: too far."
    assert waits == "Waits for an operator\u2019s approval."
    assert ended.startswith("Not done: ")
    assert "mission" not in ended


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (
            "abort",
            {"reason": "the operator said 'stop'", "cancelled": ["5f2e"]},
            "Everything was aborted: the operator said 'stop'.",
        ),
        (
            "abort",
            {"reason": "", "cancelled": ["5f2e"], "unfinished": ["turn (call 5f2e)"]},
            "Everything was aborted.\nCalls that may still run: turn (call 5f2e).",
        ),
        (
            "undo",
            {
                "skill": "r_go_to",
                "call_id": "5f2e",
                "arguments": {"x": 2},
                "how": "impossible",
                "text": "it has gone",
            },
            "Go to can\u2019t be undone: it has gone",
        ),
    ],
)
def test_what_agents_tell_their_models_of_an_operators_order_is_said_without_ids(
    script_modules: ScriptModules, kind: str, data: dict[str, Any], said: str
) -> None:
    event = AgentEvent(number=1, utime=1, agent="agent", kind=kind, missions=("m",), data={"phase": "end", **data})
    assert script_modules("reasons.js", _TEXT, own_text(event)) == said


def test_what_became_of_an_order_is_said_with_what_is_missing(script_modules: ScriptModules) -> None:
    gone = Undone(call_id="5f2e", skill="move", arguments={}, how="undone", text="back")
    undo = UndoReport(asked=3, found=1, undone=(gone,), unkept="the disk is full").model_dump(mode="json")
    outcome = "(store, answer) => store.outcome({ type: 'reply', ...answer })"
    said = script_modules("event_texts.js", outcome, {"command": "undo", "text": "", "result": undo})
    assert said == "move: undone, back; 1 of 3 undone; there is nothing else; NOT KEPT: the disk is full"
    paused = PauseReport(changed=True, held=("gate",), unkept="the disk is full")
    answer = {"command": "pause", "text": str(paused), "result": paused.model_dump(mode="json")}
    assert script_modules("event_texts.js", outcome, answer).endswith("NOT KEPT: the disk is full")
