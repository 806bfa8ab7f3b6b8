"""A supervisor judges silence, in virtual time: the fault may be its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.runtime.events import RunEvent
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from tests.helpers import hold_up


class Process:
    """A process as far as a supervisor that watches it can see."""

    pid = 4711

    def __init__(self) -> None:
        self.killed = False
        self.asked = 0
        """How often somebody asked for how long it had waited."""

    @property
    def waited_s(self) -> float:
        self.asked += 1
        return 0.0

    def kill(self) -> None:
        self.killed = True


def watched(tmp_path: Path, events: list[RunEvent]) -> tuple[Supervisor, Process]:
    """A supervisor with one process that is up."""
    blueprint = Blueprint(
        name="one", modules={"talker": ModuleSpec(name="talker", type="tests.runtime.modules:Talker")}
    )
    supervisor = Supervisor(blueprint, RunOptions(bus_url="memq://", run_dir=tmp_path), events.append)
    (slot,) = supervisor._slots
    process = Process()
    slot.state, slot.process, slot.heard = "ready", cast(Any, process), clock.monotonic()
    return supervisor, process


async def beating(supervisor: Supervisor) -> None:
    while True:
        await asyncio.sleep(0.25)
        beat(supervisor)


def beat(supervisor: Supervisor) -> None:
    (slot,) = supervisor._slots
    assert slot.process is not None
    supervisor._on_report(slot, slot.process, {"kind": "beat"})


@pytest.mark.virtual_time
async def test_a_supervisor_that_was_stopped_takes_nobody_for_hung(tmp_path: Path) -> None:
    events: list[RunEvent] = []
    supervisor, process = watched(tmp_path, events)
    tasks = [asyncio.create_task(work) for work in (supervisor._watch(), beating(supervisor))]
    for _ in range(10):
        await asyncio.sleep(2.03)
        hold_up(60.0)
    await asyncio.sleep(2)
    assert events == []
    assert not process.killed
    tasks[1].cancel()
    await asyncio.sleep(1.6)
    assert [event.kind for event in events] == ["hung"]
    assert not process.killed
    beat(supervisor)
    assert events[-1].text.startswith("its loop runs again, after 1.")
    await asyncio.sleep(supervisor._options.hang_bound_s + 0.6)
    assert process.killed
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await supervisor._reporter.close()


@pytest.mark.virtual_time
async def test_a_process_that_beats_is_asked_once_a_beat_how_long_it_waited(tmp_path: Path) -> None:
    supervisor, process = watched(tmp_path, [])
    tasks = [asyncio.create_task(work) for work in (supervisor._watch(), beating(supervisor))]
    await asyncio.sleep(10.1)
    assert process.asked == 40, "that is read from files, of each process"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
