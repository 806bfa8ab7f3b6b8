"""What commands say of a run that lives."""

from __future__ import annotations

import asyncio
import os
import re
import time
from dataclasses import replace

import pytest

from dimos_streams import clock
from dimos_streams.cli.bridge_client.answers import ModuleAnswer
from dimos_streams.cli.bridge_client.run_status import states
from dimos_streams.cli.bridge_client.run_status.readiness import unready
from dimos_streams.cli.bridge_client.run_status.state import ModuleState, NoBridge
from dimos_streams.cli.bridge_client.run_status.states import states_of
from dimos_streams.cli.bridge_client.run_status.text import write_run
from dimos_streams.common.process import run_owner
from dimos_streams.common.readable.byte_size import byte_size
from dimos_streams.live_settings import STATE
from dimos_streams.module import WARNINGS
from dimos_streams.operator.holding import GATE
from dimos_streams.operator.messages.scene import SCENE
from dimos_streams.operator.messages.waiting import WAITING
from dimos_streams.operator.robot_orders import ORDERS, SAID
from dimos_streams.runtime.registry import RunRecord
from dimos_streams.tool_stream.liveness.part_state import PART, part_name
from tests.runtime.run_records import living_record, process_record


@pytest.mark.parametrize("step_h", [-24, 24])
def test_how_long_a_run_has_lived_does_not_change_when_the_clock_is_set(step_h: int) -> None:
    record = living_record()
    record = record.model_copy(update={"started_utime": record.started_utime + step_h * 3_600_000_000})
    before = clock.steady() - record.pid_started / os.sysconf("SC_CLK_TCK")
    (state,) = asyncio.run(states_of([record]))
    assert before - 0.1 <= state.up_s <= clock.steady() - record.pid_started / os.sysconf("SC_CLK_TCK") + 0.1
    (unknown,) = asyncio.run(states_of([record.model_copy(update={"pid_started": 1 << 60})]))
    assert unknown.up_s == 0


@pytest.mark.parametrize(("system_says", "suspended"), [("S", False), ("R", False), ("T", True), ("t", True)])
def test_a_run_whose_supervisor_is_suspended_is_not_ready(
    system_says: str, suspended: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody would restart what ends then."""
    record = living_record().model_copy(update={"port": None, "processes": ()})
    stat = [system_says, *["0"] * 18, str(record.pid_started)]
    monkeypatch.setattr(run_owner, "_stat", lambda pid: stat)
    (state,) = asyncio.run(states_of([record]))
    why = f"process {record.pid}, which supervises the run, suspended"
    assert unready([state]) == ([why] if suspended else [])
    write_run(state)
    assert ("SUSPENDED" in capsys.readouterr().out) is suspended


def test_a_process_whose_end_the_run_is_just_noting_is_not_shown_as_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    process = process_record("drive", pid=os.getpid(), pid_started=1 << 60)
    before, noted = (
        living_record().model_copy(update={"processes": (each,)})
        for each in (process, replace(process, state="stopped", pid=None, pid_started=None))
    )
    monkeypatch.setattr(states, "_LOOK_S", 0.0)
    monkeypatch.setattr(states, "read_record", lambda run_dir: noted)
    assert [each.state for each in asyncio.run(states_of([before]))[0].processes] == ["stopped"]
    monkeypatch.setattr(states, "read_record", lambda run_dir: before)
    assert [each.state for each in asyncio.run(states_of([before]))[0].processes] == ["dead"]


def test_what_a_process_takes_of_the_machine_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    started = run_owner.process_start(os.getpid())
    assert started is not None
    here, gone = process_record("drive", pid=os.getpid(), pid_started=started), process_record("arm")
    (state,) = asyncio.run(states_of([living_record().model_copy(update={"processes": (here, gone)})]))
    used, absent = state.processes
    assert used.cpu_s is not None
    assert 0 < used.cpu_s <= time.process_time() + 0.02
    assert used.memory_bytes is not None
    assert used.memory_bytes > 10_000_000
    assert (absent.cpu_s, absent.memory_bytes) == (None, None)
    write_run(replace(state, modules=(ModuleState(name="drive"), ModuleState(name="arm"))))
    memory = re.escape(byte_size(used.memory_bytes))
    assert re.search(rf"drive +{os.getpid()} +ready +0 +[\d]+ .+ +{memory} +drive", capsys.readouterr().out)


@pytest.mark.parametrize("said", [None, 5, "all", ["arm"], {"modules": 7}, {"modules": None}])
def test_states_that_others_send_are_shown_whatever_they_have_in_them(
    said: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anything on the bus may send a heartbeat: status is what an operator looks at when something is wrong."""
    state = dict.fromkeys((PART, STATE, WAITING, WARNINGS, GATE, SAID, ORDERS, SCENE), said)
    heard = [
        ModuleAnswer(name=name, pid=1, health="ok", alive=True, introduced=True, state=state)
        for name in (part_name("arm"), "drive")
    ]

    async def bridge(record: RunRecord) -> tuple[NoBridge, list[ModuleAnswer]]:
        return NoBridge(), heard

    monkeypatch.setattr(states, "_bridge", bridge)
    record = living_record().model_copy(update={"others": {"arm": ""}, "modules": ("drive",)})
    (shown,) = asyncio.run(states_of([record]))
    assert shown.machines[0].modules == ()
    write_run(shown)
    assert "beside  arm (ready)" in capsys.readouterr().out
