"""Recordings of missions in virtual time, as tests replay them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.settings import defaults_of
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.clock import run_virtual
from dimos_streams.recording.metadata import describe
from dimos_streams.recording.recorder import RecordingOptions, recording
from dimos_streams.recording.selection import Selection
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions

NO_PICTURES = Selection(exclude=["*#sensor_msgs.Image"])
LOOK_OUT_AND_FOLLOW: dict[str, Any] = {
    "descriptions": ["a person in a red shirt"],
    "then": {"skill": "follow_person", "arguments": {"description": "$label"}},
}


def robot_with_bridge() -> Blueprint:
    """All of the stock robot but its agent, with a small camera."""
    bridge = ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge")
    robot = resolve("robot-only").configured({"robot.camera_width": 160, "robot.camera_height": 120})
    return robot.model_copy(update={"modules": {**robot.modules, "bridge": bridge}})


def record_mission(
    path: Path,
    *,
    seed: int = 7,
    follow_s: float = 8.0,
    selection: Selection = NO_PICTURES,
    turn: bool = False,
    settings: Sequence[str] = (),
) -> Path:
    """Look out for somebody, follow them, stop, and perhaps turn around until somebody else comes into view.

    ``settings`` change in the middle of following.
    """
    blueprint = robot_with_bridge()
    metadata = describe(
        blueprint=blueprint.model_dump(mode="json"),
        defaults=defaults_of(blueprint),
        seed=seed,
        mode="virtual",
        selection=selection,
    )
    options = RecordingOptions(path=path, selection=selection, metadata=metadata)

    async def mission() -> None:
        run = InProcessRun(
            blueprint, RunOptions(bus_url="memq://", seed=seed), attach=[lambda bus: recording(bus, options)]
        )
        await run.start()
        gateway = run.gateway
        assert gateway is not None
        await gateway.call("look_out_for", LOOK_OUT_AND_FOLLOW, caller="test")
        await asyncio.sleep(follow_s / 2)
        if settings:
            assert isinstance(gateway, Broker)
            await gateway.settings.change(settings, "test")
        await asyncio.sleep(follow_s / 2)
        await gateway.call("stop_following", {}, caller="test")
        await asyncio.sleep(0.5)
        if turn:
            await gateway.call("look_out_for", {"descriptions": ["somebody in yellow"]}, caller="test")
            await gateway.call("turn", {"angle_deg": 150}, caller="test")
            await asyncio.sleep(4)
        await run.stop()

    run_virtual(mission())
    return path
