"""What an operator has said is heard once, also if the call that says it reaches an agent's successor as well.

A bridge repeats a request until it hears of the call; a process that was killed before it could say anything has
acted all the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.errors import SkillError
from dimos_streams.testing.bus_calls import request_call
from dimos_streams.tool_stream.event import Outcome
from tests.agent.stage import Stage, stage
from tests.helpers import until

pytestmark = [pytest.mark.feature("B5"), pytest.mark.virtual_time]


async def said_again(s: Stage, call_id: str, text: str) -> tuple[Outcome | None, str]:
    """The end of a call of ``say`` that is asked for once more."""
    request_call(
        s.harness.bus, call_id, module="agent", skill="say", caller="operator", arguments={"text": text, "now": False}
    )
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
