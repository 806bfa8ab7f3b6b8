"""A call and the child that it waits for, both of modules under test."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.clock import run_virtual
from dimos_streams.module import LOSS_BOUND_S
from dimos_streams.recording.metadata import describe
from dimos_streams.recording.recorder import RecordingOptions, recording
from dimos_streams.regression.replay import ReplayOptions, replay
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions

_ROBOT = Blueprint(
    name="robot",
    modules={
        "bridge": ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge", config={"http": False}),
        "fetches": ModuleSpec(name="fetches", type="tests.recording.modules:Fetches"),
        "ponders": ModuleSpec(name="ponders", type="tests.recording.modules:Ponders"),
    },
)


@pytest.mark.feature("F3")
def test_a_motion_that_waits_for_a_child_is_acknowledged_in_the_replay_of_both(tmp_path: Path) -> None:
    log = tmp_path / "a.lcmlog"
    options = RecordingOptions(path=log, metadata=describe(blueprint=_ROBOT.model_dump(mode="json"), mode="virtual"))

    async def mission() -> None:
        run = InProcessRun(_ROBOT, RunOptions(bus_url="memq://"), attach=[lambda bus: recording(bus, options)])
        await run.start()
        assert run.gateway is not None
        await run.gateway.call("fetch", {}, caller="test")
        await asyncio.sleep(3 * LOSS_BOUND_S)
        await run.stop()

    run_virtual(mission())
    report = replay(log, ReplayOptions(modules=("fetches", "ponders")))
    assert report.passed, "\n".join(report.lines())
    assert report.calls == 2
