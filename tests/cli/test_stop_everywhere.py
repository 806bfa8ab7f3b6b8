"""``stop --everywhere`` and ``logs --machine`` where something of it is not there."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dimos_streams.cli.bridge_client.connection import BridgeAddress, discovery
from dimos_streams.cli.bridge_client.machine_parts import ask_part
from dimos_streams.cli.commands.of_runs import logs, stop
from dimos_streams.cli.commands.of_runs.skills import skills
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice, LogsBridge
from dimos_streams.cli.terminal.output import note
from dimos_streams.common.process.run_owner import process_start
from dimos_streams.errors import DimosStreamsError, UserError
from tests.runtime.run_records import living_record, process_record


def test_the_own_part_ends_where_the_bridge_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        run = SimpleNamespace(run_id="r1", machine="robot-side", bridge_on="brain-side")
        ended: list[object] = []
        connection = "dimos_streams.cli.bridge_client.connection"
        monkeypatch.setattr(f"{connection}.find_run", lambda *_, **__: run)
        monkeypatch.setattr(f"{connection}.find_bridge", lambda *_: BridgeAddress(url, None))
        monkeypatch.setattr(stop, "_stop_here", lambda run, as_json: ended.append(run))
        with pytest.raises(DimosStreamsError, match=r"of the other parts, not all have stopped: .*127\.0\.0\.1"):
            stop.stop(everywhere=True, bridge=BridgeChoice())
    assert ended == [run]


def test_a_process_that_a_part_does_not_have_is_typed_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def ask(address: BridgeAddress, machine: str, skill: str, arguments: Mapping[str, Any]) -> Any:
        if "process" in arguments:
            return {"text": f"of {arguments['process']}\n", "next_offset": 9, "more": False}
        return {"processes": ["run", "bridge", "robot1.skills"]}

    monkeypatch.setattr("dimos_streams.cli.bridge_client.machine_logs.ask_part", ask)
    monkeypatch.setattr(
        "dimos_streams.cli.bridge_client.connection.find_bridge", lambda *_: BridgeAddress("http://x", None)
    )
    with pytest.raises(UserError, match=r"has no log of a process 'brigde'; did you mean 'bridge'\? \(run, bridge, "):
        logs.logs(machine="brain-side", process="brigde", bridge=LogsBridge())
    logs.logs(machine="brain-side", process="robot1/skills", bridge=LogsBridge())
    assert capsys.readouterr().out == "of robot1.skills\n", "as its file is called"


def test_a_machine_that_nobody_knows_is_told_from_where_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    async def machines(address: BridgeAddress) -> dict[str, bool]:
        return {"brain-side": True, "robot-side": True}

    monkeypatch.setattr("dimos_streams.cli.bridge_client.machine_parts.machines_at", machines)
    why = "no machine 'brain-sde' is known at http://x; did you mean 'brain-side'? (brain-side, robot-side)"
    with pytest.raises(UserError, match=f"^{re.escape(why)}$"):
        asyncio.run(ask_part(BridgeAddress("http://x"), "brain-sde", "stop_part", {}))


def test_where_the_bridge_is_on_a_machine_that_is_not_there_it_is_said_which(monkeypatch: pytest.MonkeyPatch) -> None:
    part = SimpleNamespace(run_id="r1", machine="robot-side", bridge_on="brain-side", bridge_url=None, port=None)
    monkeypatch.setattr("dimos_streams.runtime.registry.runs", lambda: [part])
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(discovery, "BRIDGE_PORT", taken.getsockname()[1])
        with pytest.raises(
            DimosStreamsError, match="is on machine 'brain-side'; start its part there, or give --url"
        ):
            skills(bridge=BridgeChoice())


def test_of_several_runs_the_part_of_the_one_that_is_named_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    def part(number: int, machine: str) -> SimpleNamespace:
        url = f"http://127.0.0.1:{number}"
        run = {"run_id": f"r{number}", "blueprint": "b", "pid": number, "machine": machine, "run_dir": f"/{number}"}
        return SimpleNamespace(**run, bridge_url=url, token=None)

    async def stop_part(address: BridgeAddress, machine: str) -> None:
        asked.append((address.url, machine))

    asked: list[object] = []
    monkeypatch.setattr(
        "dimos_streams.runtime.registry.runs", lambda: [part(9, "arm"), part(8, "leg"), part(7, "arm")]
    )
    monkeypatch.setattr("dimos_streams.cli.bridge_client.machine_parts.stop_part", stop_part)
    monkeypatch.setattr(stop, "_stop_here", lambda run, as_json: asked.append(run.run_id))
    stop.stop(machine="head", bridge=BridgeChoice(run="r8"))
    stop.stop("r7", machine="arm", bridge=BridgeChoice())
    stop.stop(machine="arm", bridge=BridgeChoice())
    stop.stop(machine="arm", bridge=BridgeChoice(run="r8"))
    stop.stop(machine="leg", bridge=BridgeChoice())
    assert asked == [("http://127.0.0.1:8", "head"), "r7", "r9", ("http://127.0.0.1:8", "arm"), "r8"]
    for machine in ("arm", "head"):
        with pytest.raises(UserError, match="several runs are called 'b'; name one of them by its id: r9, "):
            stop.stop(machine=machine, bridge=BridgeChoice(run="b"))
    with pytest.raises(UserError, match="no living run is called 'r1'"):
        stop.stop(machine="arm", bridge=BridgeChoice(run="r1"))


def test_parts_of_one_run_that_are_all_here_are_stopped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one stopped has the others end, and then they have no bridge that could be asked."""
    common = {"blueprint": "b", "bridge_on": "head", "bus_url": "zenoh://", "token": None, "pid": 1}
    head, arm = (
        SimpleNamespace(**common, run_id=name, machine=name, bridge_url=url, run_dir=f"/{name}")
        for name, url in (("head", "http://127.0.0.1:9"), ("arm", None))
    )
    whole = SimpleNamespace(run_id="whole", machine="", bridge_on="", blueprint="c", bus_url="zenoh://")
    living, ended = [head, arm, whole], list[str]()

    async def stop_part(address: BridgeAddress, machine: str) -> None:
        ended.append(f"part {machine}")
        living.remove(arm)

    async def machines(address: BridgeAddress) -> dict[str, bool]:
        return {"head": True, "arm": True}

    parts = "dimos_streams.cli.bridge_client.machine_parts"
    monkeypatch.setattr("dimos_streams.runtime.registry.runs", lambda: list(living))
    monkeypatch.setattr(f"{parts}.stop_part", stop_part)
    monkeypatch.setattr(f"{parts}.machines_at", machines)
    monkeypatch.setattr(stop, "_stop_here", lambda run, as_json: ended.append(run.run_id))
    stop.stop(every=True, everywhere=True, bridge=BridgeChoice())
    assert ended == ["part arm", "head", "arm", "whole"], "without an error, also of the run that is on one machine"


@pytest.mark.parametrize("suspended", [True, False])
def test_a_stop_that_takes_long_names_the_processes_that_it_waits_for_and_what_holds_them(
    suspended: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends, goes_on = os.pipe()  # readable when its other end is closed, as the descriptor of a process that has ended
    run = living_record().model_copy(update={"processes": (process_record("arm", pid=os.getpid()),)})

    def say(text: str) -> None:
        note(text)
        os.close(goes_on)

    monkeypatch.setattr(stop, "_pidfd", lambda pid: os.dup(ends))  # this process may have children, too
    monkeypatch.setattr(stop, "_signal", lambda run, watched: None)
    monkeypatch.setattr(stop, "_SLOW_S", 0.01)
    monkeypatch.setattr(stop, "note", say)
    monkeypatch.setattr("dimos_streams.common.process.run_owner.is_suspended", lambda pid: suspended)
    stop._stop_here(run, as_json=False)
    os.close(ends)
    said = capsys.readouterr()
    hint = f"; it is SUSPENDED: `kill -CONT {run.pid}` lets it end in order" if suspended else ""
    assert said.err == f"waiting for arm of {run.run_id} to end, 15 s at most{hint}\n"
    assert said.out == f"{run.run_id} has stopped\n"


def test_a_stop_waits_for_what_ends_by_itself_after_the_main_process(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    orphaned, alive = os.pipe()
    script = f"(cat /dev/fd/{orphaned}; sleep 0.2; touch {ended}) </dev/null & echo begun; exec sleep 60"
    with subprocess.Popen(
        ["sh", "-c", script], stdin=alive, stdout=subprocess.PIPE, pass_fds=(orphaned,)
    ) as main:  # the only one that keeps the pipe open at whose end the other one waits
        os.close(orphaned)
        os.close(alive)
        assert main.stdout is not None
        assert main.stdout.readline() == b"begun\n"
        of_main = {"pid": main.pid, "pid_started": process_start(main.pid)}
        try:
            stop._stop_here(living_record().model_copy(update=of_main), as_json=False)
        finally:
            main.kill()
        assert ended.exists()
