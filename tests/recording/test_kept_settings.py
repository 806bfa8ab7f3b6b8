"""What an operator has set lasts over a module's restart in a replay, too, and from before the beginning of a log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.blueprint.classes import instantiate
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.settings import COMMAND_LINE
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.clock import run_virtual
from dimos_streams.module import Services
from dimos_streams.recording.cut import LogPart, cut
from dimos_streams.recording.metadata import describe
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.recorder import RecordingOptions, recording
from dimos_streams.regression.replay import ReplayOptions, replay
from dimos_streams.regression.settings.given_settings import REPLAY, without_given
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import context_for, plan_run
from dimos_streams.tool_stream.hosting.settings_change import as_assignments, restore_settings

_OPTIONS = RunOptions(bus_url="memq://", seed=7)
_BRIDGE = ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge")
_PICKER = ModuleSpec(name="picker", type="tests.recording.modules:Picker")
_ROBOT = Blueprint(name="robot", modules={"bridge": _BRIDGE, "picker": _PICKER})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of a module whose gain is set, and which an operator then restarts."""
    metadata = describe(blueprint=_ROBOT.model_dump(mode="json"), seed=7, mode="virtual")
    options = RecordingOptions(path=tmp_path / "a.lcmlog", metadata=metadata)

    async def mission() -> None:
        run = InProcessRun(_ROBOT.without("picker"), _OPTIONS, attach=[lambda bus: recording(bus, options)])
        await run.start()
        broker = run.gateway
        assert isinstance(broker, Broker)
        assert await life(run, broker, {}, "picker.gain=0.9") == {"gain": 0.9}
        await life(run, broker, {"gain": 0.9}, "")
        await run.stop()

    async def life(run: InProcessRun, broker: Broker, kept: dict[str, float], assignment: str) -> dict[str, float]:
        host = ModuleHost(run.bus)
        plan = next(plan for plan in plan_run(_ROBOT) if plan.spec.name == "picker")
        module = instantiate(plan.spec, context_for(_OPTIONS, Services(), plan))
        restore_settings(module, as_assignments(kept))
        await host.start(module, plan.topics)
        await asyncio.sleep(1.0)
        if assignment:
            await broker.settings.change([assignment], "operator")
        await broker.call("pick", {}, caller="test")
        await asyncio.sleep(0.8)
        await broker.call("pick", {}, caller="test")
        await asyncio.sleep(0.2)
        await host.stop("an operator restarts it")
        await asyncio.sleep(0.2)
        return dict(module.live_values)

    run_virtual(mission())
    return options.path


def part_of(log: Path, from_s: float) -> Path:
    part = log.with_name("part.lcmlog")
    with LogReader(log) as whole:
        cut([whole], part, LogPart(from_s=from_s))
    return part


@pytest.mark.feature("K4")
def test_what_was_set_holds_after_a_restart(log: Path) -> None:
    report = replay(log, ReplayOptions(modules=("picker",)))
    assert report.passed, "\n".join(report.lines())
    assert report.calls == 6, "the check, the change, and two in each life"


@pytest.mark.feature("K4")
@pytest.mark.parametrize(("from_s", "calls"), [(1.5, 3), (2.5, 2)], ids=["in its life", "in a later life"])
def test_what_was_set_before_a_part_of_a_log_holds_in_it(log: Path, from_s: float, calls: int) -> None:
    report = replay(part_of(log, from_s), ReplayOptions(modules=("picker",)))
    assert report.passed, "\n".join(report.lines())
    assert report.calls == calls


@pytest.mark.feature("K4")
@pytest.mark.parametrize("gain", [0.7, 0.5], ids=["new", "as the run began"])
def test_what_is_set_for_a_replay_wins_over_what_was_set_before(log: Path, gain: float) -> None:
    report = replay(part_of(log, 1.5), ReplayOptions(modules=("picker",), settings={"picker.gain": gain}))
    assert f"result: recorded 0.9, replayed {gain}" in "\n".join(report.lines())
    assert report.settings == (f"picker.gain: recorded 0.9, replayed {gain}",)


def test_what_was_set_before_and_is_not_set_for_a_replay_is_no_other_setting(log: Path) -> None:
    other = _ROBOT.configured({"picker.gain": 0.7})
    report = replay(part_of(log, 1.5), ReplayOptions(modules=("picker",), blueprint=other))
    assert report.passed, "\n".join(report.lines())
    assert report.settings == ()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, {"gain", "lens.zoom", "lens.filter"}),
        ({"gain": 1, "lens.zoom": 2}, {"lens.filter"}),
        ({"lens": {}}, {"gain"}),
        ({"lens.zoom.x": 2, "len": 3}, {"gain", "lens.filter"}),
    ],
)
@pytest.mark.parametrize("source", [COMMAND_LINE, REPLAY])
def test_a_setting_that_is_given_in_part_or_whole_is_not_kept(
    given: dict[str, Any], kept: set[str], source: str
) -> None:
    spec = _PICKER.remapped("gain", None, source).configured(["lens", "filter"], "red", "robot.yaml:3")
    for path, value in given.items():
        spec = spec.configured(path.split("."), value, source)
    assert without_given({"gain": "0.9", "lens.zoom": "3", "lens.filter": "blue"}, spec).keys() == kept
