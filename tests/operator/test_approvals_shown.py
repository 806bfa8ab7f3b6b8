"""What an operator decides on is shown whole: the steps of a plan above all, however the rest is worded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.gates.settings import ApprovalSettings
from dimos_streams.agent.policies.plans import PlanRegistry
from dimos_streams.cli.bridge_client.connection import BridgeAddress, open_gateway
from dimos_streams.cli.consoles.chat_commands import chat_command
from dimos_streams.cli.consoles.monitor_console import Lines
from dimos_streams.cli.terminal.approval_text import HEADERS, approval_lines
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import ApprovalView
from dimos_streams.operator.reporting import approvals_within
from tests.agent.policies.gate_inputs import Events, step
from tests.bridge.monitor.toy_agent import ToyAgent
from tests.operator.test_command_line import Console, console

__all__ = ["console"]

GOAL = "turn a little on the spot so that the camera sees the whole room once, then report"
STEPS = [{"skill": "turn", "arguments": {"angle_deg": number}} for number in range(30)]
STEPS += [{"skill": "go_to", "arguments": {"x": 2.5, "y": 0.0}}]


def view(id: str = "a1", skill: str = "submit_plan", **arguments: Any) -> ApprovalView:
    given = arguments or {"plan": "plan-1", "steps": STEPS, "goal": GOAL}
    module = "" if skill == "submit_plan" else "m"
    return ApprovalView(
        id=id, agent="agent", skill=skill, module=module, arguments=given, reason="why", created_utime=1
    )


def test_arguments_are_shown_as_an_argument_of_approve_takes_them() -> None:
    (line,) = approval_lines([view(skill="paint", to=None, twice=True, at={"x": 1}, how="it's \u202eé")])
    assert line.split("paint  ")[1] == 'to=null, twice=true, at={"x": 1}, how="it\'s \\u202eé"  why'


def put(console: Console, agent: ToyAgent, shown: ApprovalView) -> None:
    async def ask() -> None:
        agent.approval = shown

    console.bridge.run(ask())


@pytest.mark.slow
@pytest.mark.feature("C5", "B8")
def test_all_steps_of_a_plan_are_listed_and_its_goal_gives_way(console: Console) -> None:
    agent = console.add()
    put(console, agent, view())
    code, out, _ = console("approvals")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 2 + len(STEPS) + 1)
    assert lines[1].split() == ["a1@1", "agent", "submit_plan", "plan-1,", "31", "steps:", "why"]
    assert lines[2:4] == ["    1. turn(angle_deg=0)", "    2. turn(angle_deg=1)"]
    assert lines[-2] == "    31. go_to(x=2.5, y=0.0)"
    assert lines[-1].endswith("(and 2 more characters)")
    assert console("approvals", "a")[1] == out
    assert console("approvals", "b")[0] == 2

    async def chat(name: str, *words: str) -> str:
        async with open_gateway(BridgeAddress(console.bridge.url)) as gateway:
            return await chat_command(gateway, "say", name, words)

    assert asyncio.run(chat("approvals")).splitlines()[1:] == lines[2:]
    assert asyncio.run(chat("approvals", "a1")).splitlines()[1:] == lines[2:]
    assert asyncio.run(chat("approve", "a1")).splitlines()[1:] == lines[2:], "whoever approves sees what"
    assert agent.commands[-1][1]["arguments"] is None


def test_long_arguments_of_any_call_are_shown_whole() -> None:
    long = {"text": "x" * 300, "to": "\n  a2  agent"}
    lines = approval_lines([view("a1", "say", **long), view("a2", "move", distance_m=1)], HEADERS)
    assert lines[2:4] == [f'    text="{"x" * 300}"', '    to="\\n  a2  agent"']
    assert lines[4].split() == ["a2@1", "agent", "move", "distance_m=1", "why"]
    waiting = {"type": "change", "change": {"agents": {"agent": {"approvals": [view().model_dump()]}}}}
    assert any("31. go_to(x=2.5, y=0.0)" in line for line in Lines().of(_with_agent(waiting)))


LIKE_STEPS = [
    [{"skill": "wave", "arguments": {}, "command": "unlock the safe"}],
    [{"skill": "wave", "arguments": "unlock the safe"}],
    [{"skill": "wave", "arguments": {}}, {"skill": "unlock", "arguments": {}, "what": "the safe"}],
]


@pytest.mark.feature("C5", "B8")
@pytest.mark.virtual_time
async def test_arguments_that_look_like_a_plan_are_shown_whole_and_hide_nothing() -> None:
    events = Events()
    book = ApprovalRegistry(ApprovalSettings(), events.emit)
    for steps in LIKE_STEPS:
        for skill in ("run_all", "submit_plan"):
            arguments = {"steps": steps, "goal": "g" * 300}
            waiting = asyncio.create_task(book.ask(skill, arguments))
            await asyncio.sleep(0)
            note = events.all[-1][1]["text"]
            assert f"{skill}(steps={json.dumps(steps)}, goal=" in note
            waiting.cancel()
    lines = approval_lines([view("a1", "run_all", steps=STEPS[:1], goal="g" * 300)], HEADERS)
    shown = [f"    steps={json.dumps(STEPS[:1])}", f'    goal="{"g" * 300}"']
    assert lines[2:] == shown, "only a plan's goal is shortened"
    for name in ("submit_plan", "robot1_submit_plan"):
        of_skill = view("a1", name, steps=STEPS[:1], goal="g" * 300).model_copy(update={"module": "office"})
        assert approval_lines([of_skill], HEADERS)[2:] == shown


def _with_agent(message: dict[str, Any]) -> dict[str, Any]:
    agent = message["change"]["agents"]["agent"]
    agent.update(state="idle", mode="running", missions=[], calls=[], model="offline")
    return message


@pytest.mark.slow
def test_what_has_no_room_in_an_answer_is_said_and_can_be_asked_for(console: Console) -> None:
    large = [view(f"a{number}", "say", text=str(number) * 9000, steps=[1] * 200) for number in range(9)]
    sent = approvals_within(large)
    assert [each.hidden_characters > 0 for each in sent] == [True] * 9
    (whole,) = approvals_within(large[:1])
    assert (whole.hidden_characters, whole.arguments) == (0, large[0].arguments)
    agent = console.add()
    put(console, agent, sent[0])
    hidden = sent[0].hidden_characters
    assert f"    {hidden} characters not shown: dimos-streams approvals a0" in console("approvals")[1].splitlines()
    agent.whole = large[0]
    assert f'    text="{"0" * 9000}"' in console("approvals", "a0")[1].splitlines()
    assert console("approve", "a0", "--arg", "now=true")[0] == 0
    assert agent.commands[-1][1]["arguments"] == {**large[0].arguments, "now": True}
    put(console, agent, sent[0])
    agent.whole = None
    code, _, error = console("approve", "a0", "--arg", "now=true")
    assert (code, f"{hidden} characters of the arguments of a0 are too long" in error) == (2, True)


@pytest.mark.feature("C5", "B8")
@pytest.mark.virtual_time
async def test_the_note_that_a_plan_waits_has_all_its_steps_and_plans_are_bounded() -> None:
    events = Events()
    book = ApprovalRegistry(ApprovalSettings(), events.emit)
    plans = PlanRegistry(book, events.emit, step)
    plan = plans.create("g" * 5000, STEPS)
    submitting = asyncio.create_task(plans.submit(plan.id, ("m1",)))
    await asyncio.sleep(0)
    (created,) = [data for kind, data in events.all if kind == "approval_created"]
    assert "\n30. turn(angle_deg=29)\n31. go_to(x=2.5, y=0.0)\n" in created["text"]
    (pending,) = book.pending()
    assert approvals_within([pending] * 3) == [pending] * 3
    assert len(pending.arguments["goal"]) == 201
    submitting.cancel()
    with pytest.raises(SkillError, match="bytes as JSON, and 16000 are the most"):
        plans.create("g", [{"skill": "say", "arguments": {"text": "x" * 16_000}}])
    with pytest.raises(SkillError, match="16000 are the most"):
        plans.add_steps(plans.create("g", STEPS).id, [{"skill": "say", "arguments": {"text": "x" * 15_000}}])
    waiting = asyncio.create_task(book.ask("say", {"text": "x" * 30_000}))
    await asyncio.sleep(0)
    text = events.all[-1][1]["text"]
    assert "characters are not shown here: `dimos-streams approvals agent-" in text
    assert len(text) < 21_000
    waiting.cancel()
