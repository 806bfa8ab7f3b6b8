"""The entry of a run in the registry: it shows what has become of the run also where no event says it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.cli.running.run_entry import RunEntry
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.common.process.run_owner import process_start
from dimos_streams.runtime import registry
from dimos_streams.runtime.events import ProcessView
from dimos_streams.runtime.options import RunOptions
from tests.cli import blueprints
from tests.helpers import until


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    directory = tmp_path / "runs" / "unplugged-1"
    directory.mkdir(parents=True)
    return directory


def _truncate(run_dir: Path) -> None:
    (run_dir / registry.RECORD_FILE).write_text("")


def _damage(run_dir: Path) -> None:
    (run_dir / registry.RECORD_FILE).write_text("{")


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "spoil", [_truncate, _damage, shutil.rmtree, lambda run_dir: shutil.rmtree(run_dir.parent.parent)]
)
async def test_a_run_whose_files_were_deleted_or_damaged_is_known_again_in_seconds(
    spoil: Callable[[Path], None], run_dir: Path
) -> None:
    entry = RunEntry(
        RunPlan(request=RunRequest(reference="unplugged"), blueprint=blueprints.unplugged),
        RunOptions(bus_url="memq://", run_dir=run_dir),
        list,
    )
    entry.renew()
    for _ in range(2):
        spoil(run_dir)
        assert registry.runs() == []
        await until(lambda: registry.runs() == [entry.record], 5.0)
    entry.remove("stopped")
    shutil.rmtree(run_dir)
    await asyncio.sleep(10.0)
    with pytest.raises(FileNotFoundError):
        _damage(run_dir)  # nothing has made the directory again


@pytest.mark.virtual_time
async def test_a_process_that_has_lasted_is_not_shown_as_failing_for_ever(run_dir: Path) -> None:
    began = clock.monotonic()

    def processes() -> list[ProcessView]:
        failing = "no camera" if clock.monotonic() - began < 5 else ""
        return [
            ProcessView(label="camera", modules=("camera",), pid=None, state="ready", restarts=2, failing=failing)
        ]

    plan = RunPlan(request=RunRequest(reference="unplugged"), blueprint=blueprints.unplugged)
    entry = RunEntry(plan, RunOptions(bus_url="memq://", run_dir=run_dir), processes)

    def shown() -> object:
        return registry.runs()[0].processes[0].failing

    entry.renew()
    assert shown() == "no camera"
    await until(lambda: shown() == "", 20.0)
    entry.remove("stopped")
    assert registry.runs() == []


@pytest.mark.virtual_time
async def test_what_happens_at_once_is_one_renewal_which_shows_the_last_of_it(run_dir: Path) -> None:
    restarts, looked = [0], list[float]()

    def processes() -> list[ProcessView]:
        looked.append(clock.monotonic())
        return [
            ProcessView(label="camera", modules=("camera",), pid=os.getpid(), state="ready", restarts=restarts[0])
        ]

    entry = RunEntry(
        RunPlan(request=RunRequest(reference="unplugged"), blueprint=blueprints.unplugged),
        RunOptions(bus_url="memq://", run_dir=run_dir),
        processes,
    )
    entry.renew()
    await asyncio.sleep(1.0)
    for _ in range(50):
        restarts[0] += 1
        entry.renew_soon()
    await asyncio.sleep(0.001)
    assert len(looked) == 2, "one event is shown at once"
    for _ in range(50):
        restarts[0] += 1
        entry.renew_soon()
        await asyncio.sleep(0.002)
    await until(lambda: registry.runs()[0].processes[0].restarts == 100)
    assert len(looked) <= 5
    assert registry.runs()[0].processes[0].pid_started == process_start(os.getpid())
    entry.renew_soon()
    entry.remove("stopped")
    await asyncio.sleep(1.0)
    assert registry.runs() == []
