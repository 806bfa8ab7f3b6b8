"""What an operator has said or ordered is done once, also if its call reaches an agent's successor as well.

A bridge repeats a request until it hears of the call; a process that was killed before it could say anything has
acted all the same.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.operator_skills import OperatorSkills
from dimos_streams.errors import SkillError
from dimos_streams.testing.bus_calls import request_call
from dimos_streams.tool_stream.event import Outcome
from tests.agent.stage import Stage, stage
from tests.helpers import until

pytestmark = [pytest.mark.feature("B5"), pytest.mark.virtual_time]


async def said_again(s: Stage, call_id: str, text: str) -> tuple[Outcome | None, str]:
    """The end of a call of ``say`` that is asked for once more."""
    return await ordered(s, call_id, "say", text=text, now=False)


async def ordered(s: Stage, call_id: str, skill: str, /, **arguments: Any) -> tuple[Outcome | None, str]:
    """The end of an order that is asked of the agent itself, by its call's id."""
    request_call(s.harness.bus, call_id, module="agent", skill=skill, caller="operator", arguments=arguments)
    await until(lambda: any(each.call_id == call_id and each.type == "close" for each in s.harness.events()))
    close = next(each for each in s.harness.events() if each.call_id == call_id and each.type == "close")
    return close.outcome, close.text


async def test_a_mission_that_a_killed_agent_began_is_not_begun_by_its_successor(tmp_path: Path) -> None:
    async with stage(run_dir=tmp_path) as s:
        call = await s.say("move 1")
        await call.result()
        assert s.skills.moves == [1.0]
    async with stage(run_dir=tmp_path) as s:
        outcome, text = await said_again(s, call.id, "move 1")
        assert (outcome, s.skills.moves) == (Outcome.FAILED, [])
        assert text == (
            "the agent was started again after it had heard this, and does not do it twice:"
            f" `dimos-streams missions {call.id}` shows what becomes of it"
        )


async def test_a_stop_acts_once_more_and_is_recorded_once(tmp_path: Path) -> None:
    async with stage(run_dir=tmp_path) as s:
        call = await s.say("stop")
        with pytest.raises(SkillError, match="no velocity gate was heard"):
            await call.result()
    async with stage(run_dir=tmp_path) as s:
        _, text = await said_again(s, call.id, "stop")
        assert text.startswith("stopped: no call ran")
    (record,) = (tmp_path / "missions").glob(f"*{call.id}*")
    assert record.read_text().count('"mission_start"') == 1


ORDERS: list[tuple[str, dict[str, Any]]] = [
    ("step", {"mode": "on"}),
    ("step", {}),
    ("step", {"mode": "off"}),
    ("resume", {}),
    ("set_skill", {"skill": "move", "enabled": True}),
    ("set_model", {"model": "offline"}),
    ("forget", {}),
    ("undo", {"count": 1}),
    ("abort", {"rollback": True}),
]


async def test_an_order_that_a_killed_agent_has_carried_out_is_not_carried_out_by_its_successor(
    tmp_path: Path,
) -> None:
    async with stage(run_dir=tmp_path) as s:
        for number, (skill, arguments) in enumerate(ORDERS):
            await ordered(s, f"order{number}", skill, **arguments)
    async with stage(run_dir=tmp_path) as s:
        await (await s.say("move 1")).result()
        await (await s.harness.call("pause", caller="operator")).closed()
        await (await s.harness.call("set_skill", caller="operator", skill="move", enabled=False)).closed()
        newest = s.agent.core.events.last_number
        for number, (skill, arguments) in enumerate(ORDERS):
            outcome, text = await ordered(s, f"order{number}", skill, **arguments)
            assert (outcome, "does not carry it out twice" in text) == (Outcome.FAILED, True), (skill, text)
        assert s.agent.core.events.last_number == newest, "nothing has happened"
        assert s.agent.core.control.mode is Mode.PAUSED


@pytest.mark.parametrize(
    ("skill", "arguments", "waits_in"),
    [
        ("set_skill", {"skill": "move", "enabled": False}, (SkillCatalog, "refresh")),
        ("set_model", {"model": "offline"}, (OperatorSkills, "_load_for")),
    ],
)
async def test_an_order_that_a_killed_agent_had_not_come_to_is_carried_out_by_its_successor(
    skill: str,
    arguments: dict[str, Any],
    waits_in: tuple[type, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with stage(run_dir=tmp_path) as s:
        waits: list[object] = []

        async def never(*given: object) -> None:
            waits.append(given)
            await asyncio.Event().wait()

        with monkeypatch.context() as busy:
            busy.setattr(*waits_in, never)
            request_call(s.harness.bus, "order1", module="agent", skill=skill, caller="operator", arguments=arguments)
            await until(lambda: waits and any(each.call_id == "order1" for each in s.harness.events()))
    async with stage(run_dir=tmp_path) as s:
        assert (await ordered(s, "order1", skill, **arguments))[0] is Outcome.COMPLETED


async def test_an_order_to_hold_still_or_to_end_is_carried_out_as_often_as_it_comes(tmp_path: Path) -> None:
    async with stage(run_dir=tmp_path) as s:
        assert (await ordered(s, "order1", "pause"))[0] is Outcome.COMPLETED
        assert (await ordered(s, "order2", "abort"))[0] is Outcome.COMPLETED
    async with stage(run_dir=tmp_path) as s:
        await (await s.harness.call("resume", caller="operator")).result()
        assert (await ordered(s, "order2", "abort"))[0] is Outcome.COMPLETED
        assert (await ordered(s, "order1", "pause"))[0] is Outcome.COMPLETED
        assert s.agent.core.control.paused
