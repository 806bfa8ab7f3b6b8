"""What commands say of a run that has died: to those who wait for its calls, and to those who come later."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.cli.bridge_client.answers import HEALTH
from dimos_streams.cli.bridge_client.connection import BridgeUnreachableError, find_bridge
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.common.process.loopback import BRIDGE_PORT
from tests.cli.machine import ROVER, Machine, Result, read_until
from tests.cli.test_terminal import terminal
from tests.helpers import wait_for

pytestmark = pytest.mark.live

DIED = "cancelled: the run has died: its main process ended without stopping it"
KILLED = r"ended \d{4}-\d\d-\d\d \d\d:\d\d:\d\d: it was killed, or its machine went off"


def started(machine: Machine) -> dict[str, Any]:
    """The state of a rover's run in the background."""
    assert machine("run", ROVER, "--daemon", "--port", str(machine.port)).code == 0
    (state,) = machine("status", "--json").json
    return dict(state)


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # who has no parent ends by itself
            os.kill(pid, signal.SIGKILL)


def pids_of(run: dict[str, Any], *labels: str) -> list[int]:
    pids = {view["label"]: view["pid"] for view in run["processes"]}
    return [pids[label] for label in labels]


def shown(calls: Result) -> dict[str, str]:
    """The state of each skill's call in a table of calls."""
    return {line.split()[1]: line.split()[2] for line in calls.out.splitlines()[1:]}


@pytest.mark.feature("F5")
def test_whoever_waits_for_a_run_that_dies_is_told_and_its_calls_are_listed_afterwards(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started(machine)
    assert machine("call", "stumble").code == 1
    assert machine("call", "move", "--arg", "distance_m=0.1").code == 0
    while_it_lived = machine("calls", "--json").json
    waiting = ["call", "wander"], ["say", "move 100 m", "--wait", "close"]
    with machine.started_warm(*waiting[0]) as calling, machine.started_warm(*waiting[1]) as saying:
        read_until(calling, "Wandering")
        read_until(saying, "Moving")
        kill(run["pid"])
        assert DIED in calling.communicate(timeout=20)[0]
        assert DIED in saying.communicate(timeout=20)[0]
        assert calling.returncode == saying.returncode == 1
    assert machine.leaves_nothing()

    ended = machine("status", "--all", "--json").json["ended"]
    assert Path(ended[-1]["run_dir"], "ready").exists(), "starts that fail do not drive it out"
    listed = machine("calls", "--run", run["run_id"])
    assert re.fullmatch(rf"run {run['run_id']} {KILLED}\n", listed.err)
    assert shown(listed) == {"stumble": "failed", "move": "cancelled", "wander": "cancelled", "say": "cancelled"}
    assert machine("calls", "--run", "rover", "--json").json[:2] == while_it_lived
    assert machine("calls", "--run", "rover", "--open").out == ""
    assert machine("calls", "--run", "rover", "--port", "9").code == 2
    stumble, move = (call["call_id"] for call in while_it_lived)
    followed = machine("follow", move[:8], "--run", run["run_id"])
    assert (followed.code, followed.err) == (0, "")
    began, *_, done = followed.out.splitlines()
    assert (f"began (distance_m=0.1)  [{move}]" in began, "completed: Moved 0.1 m" in done) == (True, True)
    assert [event["seq"] for event in machine("follow", move, "--run", "rover", "--json").json_lines] == [1, 2, 3, 4]
    assert machine("follow", stumble, "--run", "rover").code == 1
    unknown = machine("follow", "nope", "--run", "rover")
    assert (unknown.code, f"`dimos-streams calls --run {run['run_id']}` lists them" in unknown.err) == (2, True)
    assert machine("status", "--all", "--json").json["ended"] == ended, "reading its journal changes nothing of it"

    last = rf"the last run here, {run['run_id']}, {KILLED} \(`dimos-streams logs {run['run_id']}` .* --all` .*"
    for command in ("stop", "status"):
        assert re.search(rf"no run lives; {last}; `dimos-streams run BLUEPRINT` starts one\n", machine(command).err)
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(machine.state))
    guessed, named = find_bridge(BridgeChoice()), find_bridge(BridgeChoice(port=9))
    assert (guessed.url, guessed.is_guess, named.is_guess) == (f"http://127.0.0.1:{BRIDGE_PORT}", True, False)
    with pytest.raises(BridgeUnreachableError, match=rf"no bridge answers .*; {last}"):
        asyncio.run(replace(guessed, url=named.url).get("/healthz", HEALTH))


@pytest.mark.feature("F5")
def test_whoever_waits_hears_of_the_end_of_a_run_whose_bridge_can_say_nothing(machine: Machine) -> None:
    run = started(machine)
    ended_so = rf"error: run {run['run_id']} {KILLED}; "
    piped = machine.started_warm("chat", stdin=subprocess.PIPE)
    with machine.started_warm("call", "wander") as calling, piped as piping, terminal(machine, "chat") as typing:
        read_until(calling, "Wandering")
        print("/help", file=piping.stdin, flush=True)
        read_until(piping, "leave, as Ctrl-D")
        typing.read_until("you>")
        kill(*pids_of(run, "bridge"), run["pid"], *pids_of(run, "rover", "agent"))
        assert piping.wait(30) == 1, "it does not wait for the end of its input"
        said = [waiting.communicate(timeout=30)[0] for waiting in (calling, piping)]
        typing.read_until(ended_so)
        assert [process.wait(20) for process in (calling, piping, typing.process)] == [1, 1, 1]
    assert [bool(re.search(ended_so, text)) for text in said] == [True, True]
    assert machine.leaves_nothing()
    ended = machine("status", "--all", "--json").json["ended"]
    listed = machine("calls", "--run", run["run_id"], "--open")
    assert listed.err.endswith("; 1 call open then\n")
    assert machine("status", "--all", "--json").json["ended"] == ended, "also where its log is still beside it"
    assert shown(listed) == {"wander": "open"}
    (wander,) = machine("calls", "--run", "rover", "--json").json
    left = machine("follow", wander["call_id"], "--run", "rover")
    assert (left.code, "Wandering" in left.out) == (1, True)
    assert re.search(rf"error: call {wander['call_id']} was open when run {run['run_id']} {KILLED}\n", left.err)

    path = Path(run["run_dir"]) / "journal.sqlite"
    path.write_bytes(b"not a database, but long enough for one" * 100)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()
    damaged = machine("calls", "--run", "rover")
    assert (damaged.code, damaged.out) == (1, "")
    assert damaged.err == f"error: the journal {path} can't be read: file is not a database\n"
    path.unlink()
    none = machine("calls", "--run", "rover")
    assert none.code == 2
    assert f"run {run['run_id']} has no journal in {path.parent}" in none.err


@pytest.mark.feature("B10")
def test_whoever_said_something_to_an_agent_that_is_killed_learns_what_becomes_of_the_mission(
    machine: Machine,
) -> None:
    run = started(machine)
    with machine.started_warm("say", "move 8 m", "--wait", "close") as saying:
        read_until(saying, "Moving")
        kill(*pids_of(run, "agent"))
        said, _ = saying.communicate(timeout=20)
    assert saying.returncode == 1
    assert "lost: module 'agent'" in said
    found = re.search(
        r"agent 'agent' goes on with this mission .* `dimos-streams missions (\w+)` .* say stop` ends", said
    )
    assert found is not None, said
    goes_on = "the agent was restarted and goes on with this mission"
    wait_for(lambda: goes_on in machine("missions", found[1]).out)
    assert machine("stop").code == 0
    assert machine.leaves_nothing()
