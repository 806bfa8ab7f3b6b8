"""kill -9 of each part of a running mission, one at a time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.tool_stream.event import Outcome, ToolEvent
from tests.helpers import until
from tests.live.mission import Mission, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]


def with_mission(
    bus_url: str, free_port: int, run_dir: Path, scenario: Callable[[Mission], Awaitable[None]], **more: Any
) -> None:
    async def main() -> None:
        async with asyncio.timeout(80), running(bus_url, free_port, run_dir, **more) as mission:
            await scenario(mission)

    asyncio.run(main())


@pytest.mark.feature("F5")
def test_skills(bus_url: str, free_port: int, tmp_path: Path) -> None:
    """The commander dies: the robot stands, the call is lost, its lease is free, the skills come back."""

    async def scenario(mission: Mission) -> None:
        follow = await mission.follow()
        moment = mission.kill("skills")
        assert await mission.lost_after(follow, moment) <= 2.0
        (close,) = (event for event in mission.events if event.call_id == follow and event.type == "close")
        assert close.text.endswith(": its process ended by SIGKILL")
        await until(lambda: mission.still_since(moment) is not None)
        still = mission.still_since(moment)
        assert still is not None
        assert still <= 0.5
        await mission.until_restarted("skills")
        turned = await mission.drive("turn", angle_deg=30)
        assert turned.outcome is Outcome.COMPLETED

    with_mission(bus_url, free_port, tmp_path, scenario)


def test_gate(bus_url: str, free_port: int, tmp_path: Path) -> None:
    """While its gate hangs the base stops by itself; killed, the gate comes back and the follow goes on."""

    async def scenario(mission: Mission) -> None:
        await mission.follow()
        moment = mission.kill("gate", signal.SIGSTOP)
        await until(lambda: mission.still_since(moment) is not None)
        still = mission.still_since(moment)
        assert still is not None
        assert still <= 0.65
        mission.kill("gate")
        await mission.until_restarted("gate")
        await until(lambda: mission.speeds[-1][1] > 0.2, 30)

    with_mission(bus_url, free_port, tmp_path, scenario)


def test_simulator(bus_url: str, free_port: int, tmp_path: Path) -> None:
    """The whole robot dies and comes back at its start; skills answer again."""

    async def scenario(mission: Mission) -> None:
        await mission.follow()
        mission.kill("robot")
        await mission.until_restarted("robot")
        assert (await mission.call("stop_following")).outcome is Outcome.COMPLETED
        assert (await mission.drive("turn", angle_deg=20)).outcome is Outcome.COMPLETED
        seen = await mission.call("observe")
        assert seen.outcome is Outcome.COMPLETED

    with_mission(bus_url, free_port, tmp_path, scenario)


def test_bridge(bus_url: str, free_port: int, tmp_path: Path) -> None:
    """The follow goes on without the bridge; when it is back nothing is missing, and the agent still hears all."""

    async def scenario(mission: Mission) -> None:
        def ends_of_missions() -> list[ToolEvent]:
            return [e for e in mission.events if e.skill == "say" and e.type == "close"]

        follow = await mission.follow()
        mission.kill("bridge")
        await mission.until_restarted("bridge")
        await mission.gateway.call("say", {"text": "stop"}, caller="operator")
        await until(lambda: any(e.call_id == follow and e.type == "close" for e in mission.events))
        seqs = [e.seq for e in mission.events if e.call_id == follow]
        assert seqs == list(range(1, len(seqs) + 1))
        await until(lambda: len(ends_of_missions()) == 2)
        outcomes = {e.outcome: e.text for e in ends_of_missions()}
        assert outcomes.keys() == {Outcome.COMPLETED, Outcome.FAILED}, "the stop is done, and what it ended is not"
        assert outcomes[Outcome.FAILED].startswith("the mission did not complete: aborted")

    # A busy machine may take longer to start a bridge than a call goes on without one.
    with_mission(bus_url, free_port, tmp_path, scenario, loss_bound_s=60.0)


def test_agent(bus_url: str, free_port: int, tmp_path: Path) -> None:
    """The robot goes on following; the new agent knows of it and can stop it."""

    async def scenario(mission: Mission) -> None:
        follow = await mission.follow()
        mission.kill("agent")
        await mission.until_restarted("agent")
        before = len(mission.texts_of(follow))
        await until(lambda: len(mission.texts_of(follow)) > before + 1)
        said = await mission.call("say", text="stop")
        assert said.outcome is Outcome.COMPLETED
        close = [e for e in mission.events if e.call_id == follow and e.type == "close"]
        assert [e.text for e in close] == ["aborted by the operator: the operator said 'stop'"]

    with_mission(bus_url, free_port, tmp_path, scenario)
