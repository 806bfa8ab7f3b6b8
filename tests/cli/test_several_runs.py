"""Commands where several runs live: for the one that is named, or for all of them."""

from __future__ import annotations

import pytest

from tests.cli.machine import ROVER, Machine
from tests.ports import free_bus

pytestmark = pytest.mark.live


def started(machine: Machine) -> str:
    """The id of another run of a rover, which no other run hears."""
    run = machine("run", ROVER, "--daemon", "--in-process", "--set", "bridge.port=0", "--bus", free_bus())
    assert run.code == 0, run
    newest = machine("status", "--json").json[0]
    return str(newest["run_id"])


def test_commands_mean_the_run_that_they_name_and_stop_all_means_each(machine: Machine) -> None:
    old, new = started(machine), started(machine)
    assert f"{new}, the newest, is meant, not {old}" in machine("calls").err
    for command in (
        ["call", "move", "--arg", "distance_m=0.1"],
        ["say", "move 0.2 m", "--wait", "close"],
        ["skills"],
        ["approvals"],
        ["pause"],
    ):
        done = machine(*command, "--run", old)
        assert done.code == (1 if command == ["pause"] else 0), done  # a rover has no gate that could hold it
        assert "several runs live" not in done.err
    assert [view["skill"] for view in machine("calls", "--run", old, "--json").json] == [
        "move",
        "say",
        "move",
        "pause",
    ]
    assert machine("calls", "--run", new, "--json").json == []
    assert machine("call", "move", "--run", old, "--port", "9").code == 2
    unknown = machine("say", "hello", "--run", "nobody")
    assert (unknown.code, unknown.err) == (2, f"error: no living run is called 'nobody' (living: {new}, {old})\n")

    newest = f"several runs are called 'rover': {new}, the newest, is meant, not {old}\n"
    for command in (["logs", "rover"], ["calls", "--run", "rover"], ["status", "rover"]):
        assert machine(*command).err.splitlines(keepends=True)[0] == newest, command
    refused = f"error: several runs are called 'rover'; name one of them by its id: {new}, {old}\n"
    for end in (["stop", "rover"], ["stop-robot", "--run", "rover"], ["cancel", "--all", "--run", "rover"]):
        several = machine(*end)
        assert (several.code, several.err) == (2, refused), "no other run than the one that is meant ends"
    for named in ([], ["--run"]):
        for one in ("stop", "status"):
            both = machine(one, "--all", *named, old)
            refusal = f"error: --all is every run, and {old!r} names one; give one of them\n"
            assert (both.code, both.err) == (2, refusal)
        (only,) = machine("status", *named, old, "--json").json
        assert only["run_id"] == old
        logged = machine("logs", *named, old)
        assert (logged.code, logged.err) == (0, machine("logs", old).err)
    for one in ("stop", "status", "logs"):
        twice = machine(one, old, "--run", new)
        assert (twice.code, f"--run {new!r} and RUN {old!r} both name a run" in twice.err) == (2, True)
    assert machine("stop", "--run", old).out == f"{old} has stopped\n"
    assert "run: stopping\n" in machine("logs", old).out, "one process can't be hurried"
    old = started(machine)
    stopped = machine("stop", "--all", "--json")
    assert (stopped.code, stopped.err) == (0, "")
    assert [(line["run_id"], line["stopped"]) for line in stopped.json_lines] == [(old, True), (new, True)]
    assert machine.leaves_nothing()
    assert machine("stop", "--all").code == 1
