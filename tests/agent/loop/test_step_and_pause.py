"""Step mode and pauses as operators order them: each answer says what became of what the other one held."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.tool_stream.event import Outcome
from tests.agent.stage import Stage, stage

pytestmark = [pytest.mark.feature("B3"), pytest.mark.virtual_time]

ENDED = "; that ends the pause: what it held still goes on"


async def ordered(s: Stage, skill: str, **arguments: str) -> str:
    return str(await (await s.harness.call(skill, caller="operator", **arguments)).result())


async def test_step_mode_says_that_it_ends_a_pause() -> None:
    async with stage() as s:
        assert await ordered(s, "step", mode="on") == "step mode is on"
        await ordered(s, "pause")
        assert await ordered(s, "step", mode="on") == f"step mode is on{ENDED}"
        assert await ordered(s, "step", mode="on") == "it is in step mode already"
        await ordered(s, "pause")
        assert await ordered(s, "step", mode="once") == f"step mode is on; no call waits{ENDED}"


async def test_a_pause_that_another_command_has_ended_meanwhile_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as s:
        hold = s.agent.core.oversight.robot_hold
        confirmed = hold.confirmed

        async def later() -> HoldView:
            await asyncio.sleep(0.5)  # as gates of a robot may take
            return await confirmed()

        monkeypatch.setattr(hold, "confirmed", later)
        pausing = await s.harness.call("pause", caller="operator")
        await asyncio.sleep(0.1)
        await ordered(s, "step", mode="on")
        paused = await pausing.closed()
        assert paused.outcome is Outcome.FAILED
        assert paused.text == "another command has ended the pause meanwhile: the agent's mode is stepping"
