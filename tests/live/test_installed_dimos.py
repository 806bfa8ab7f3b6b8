"""A robot and a listener that are written with dimos' own API, where dimos is installed.

``DIMOS_PYTHON=PATH/TO/dimos/python pytest -n0 tests/live/test_installed_dimos.py``
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.live.mission import Mission, running
from tests.live.test_dimos_robot import scouting_group

DIMOS = os.environ.get("DIMOS_PYTHON", "")

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not DIMOS, reason="DIMOS_PYTHON names no Python of an environment with dimos"),
]

Seen = dict[str, Any]


@contextlib.asynccontextmanager
async def beside_dimos(
    which: str, blueprint: Blueprint, zenoh_url: str, port: int, tmp_path: Path
) -> AsyncIterator[tuple[Mission, Path, asyncio.subprocess.Process]]:
    """A run of ours beside a module of dimos, on its default transport; what that has seen is in the file."""
    domain, group = zenoh_url.rpartition("/")[2], scouting_group(zenoh_url)
    environment = {**os.environ, "ZENOH_DOMAIN": domain, "ZENOH_SCOUT_ADDR": group}
    target, program = tmp_path / "seen.json", Path(__file__).with_name("dimos_modules.py")
    process = await asyncio.create_subprocess_exec(
        DIMOS, str(program), which, str(target), stdin=asyncio.subprocess.PIPE, env=environment
    )
    try:
        async with running(f"{zenoh_url}?keys=dimos&scout={group}", port, tmp_path, blueprint) as mission:
            yield mission, target, process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 30)


def seen(target: Path) -> Seen:
    found: Seen = json.loads(target.read_text()) if target.exists() else {}
    return found


def test_our_skills_drive_a_robot_of_dimos(zenoh_url: str, free_port: int, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with beside_dimos("robot", resolve("dimos-robot"), zenoh_url, free_port, tmp_path) as (
            mission,
            target,
            _,
        ):
            await until(target.exists, 60.0)
            await mission.until_offered("move", "turn", "observe", "say")
            for skill, arguments in (("move", {"distance_m": 0.5}), ("turn", {"angle_deg": 90.0})):
                call = await mission.call(skill, **arguments)
                assert call.outcome is Outcome.COMPLETED, call
            await until(lambda: seen(target)["speed"] == 0.0 and seen(target)["turn"] == 0.0)
            assert seen(target)["x"] == pytest.approx(0.5, abs=0.1)
            assert math.degrees(seen(target)["yaw"]) == pytest.approx(90, abs=8)
            call = await mission.call("observe")
            assert (call.outcome, call.answer) == (Outcome.COMPLETED, "I see nobody")
            call = await mission.call("say", text="move 0.3")
            assert call.outcome is Outcome.COMPLETED, call
            await until(lambda: seen(target)["y"] > 0.2)

    asyncio.run(scenario())


def test_a_module_of_dimos_sees_our_robot(zenoh_url: str, free_port: int, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with beside_dimos("watcher", resolve("follow-person"), zenoh_url, free_port, tmp_path) as (
            _,
            target,
            _,
        ):
            await until(lambda: seen(target).get("odom", 0) > 40, 60.0)
            await until(lambda: "person in a red shirt and blue trousers" in seen(target)["labels"], 60.0)
            assert seen(target)["frame"] == "odom"
            assert seen(target)["x"] == pytest.approx(-2.4, abs=0.1)

    asyncio.run(scenario())
