"""The runs that have ended: how each did, as far as its directory tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.cli.bridge_client.connection import find_run
from dimos_streams.cli.bridge_client.ended import last_ended
from dimos_streams.cli.terminal.log_files import find_run_dir
from dimos_streams.common.process.run_owner import pid_space, run_id_of
from dimos_streams.common.secrets import know
from dimos_streams.errors import NoRunError, UserError
from dimos_streams.runtime.ended_runs import END_FILE, KILLED, EndedRun, ended_runs, write_end
from dimos_streams.runtime.registry import RunRecord, write
from tests.runtime.run_records import living_record, make_run

BEGAN = 1_764_000_000_000_000


def record_of(run_dir: Path, machine: str = "") -> RunRecord:
    return RunRecord(
        run_id="rover-7",
        pid=7,
        pid_started=1,
        pid_space=pid_space(),
        blueprint="rover",
        machine=machine,
        bus_url="memq://",
        port=None,
        token="the-token-of-a-run",
        started_utime=BEGAN,
        run_dir=run_dir,
    )


def last_written(run_dir: Path, utime: int) -> None:
    """Make all files of a run as old as that."""
    for path in (run_dir, *run_dir.rglob("*")):
        os.utime(path, ns=(utime * 1000, utime * 1000))


def test_each_is_told_with_what_its_directory_says_newest_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "utime", lambda: BEGAN + 9_000_000)
    in_order = make_run("1764000000001-rover-7")
    write(record_of(in_order, machine="arm"))
    write_end(record_of(in_order, machine="arm"), "the first line\n of two")
    (in_order / "run.json").unlink()
    killed = make_run("1764000000002-rover-7")
    write(record_of(killed))
    (killed / "logs" / "rover.log").write_text("here")
    last_written(killed, BEGAN + 5_000_000)
    refused = make_run("1764000000003-my-rover-8")
    last_written(refused, BEGAN)
    silent = make_run("1764000000004-rover-9")
    (silent / "logs" / "rover.log").write_text("here")
    (silent / END_FILE).write_text("{")
    last_written(silent, BEGAN + 1)
    make_run("1764000000005-rover-10", lives=True)
    assert ended_runs() == [
        EndedRun("rover-7", "rover", "arm", BEGAN, BEGAN + 9_000_000, "the first line of two", in_order),
        EndedRun("rover-7", "rover", None, BEGAN, BEGAN + 5_000_000, KILLED, killed),
        EndedRun("my-rover-8", None, None, BEGAN + 3_000, BEGAN, "it did not begin", refused),
        EndedRun("rover-9", None, None, BEGAN + 4_000, BEGAN + 1, "it does not say", silent),
    ]
    assert ended_runs()[0].logs == in_order / "logs"


def test_what_a_run_writes_of_its_end_has_no_secret_and_is_short() -> None:
    run_dir = make_run("1764000000001-rover-7")
    know("the-token-of-a-run")
    write_end(record_of(run_dir), f"failed: the-token-of-a-run {'x' * 1000}")
    text = (run_dir / END_FILE).read_text()
    assert "the-token" not in text
    (run,) = ended_runs()
    assert run.how.startswith("failed: [redacted] xxx")
    assert len(run.how) == 300


def test_a_damaged_end_is_as_none() -> None:
    run_dir = make_run("0001-rover-7")
    (run_dir / END_FILE).write_bytes(b"\xff\xfe")
    (ended,) = ended_runs()
    assert (ended.run_id, ended.how) == ("rover-7", "it did not begin")


def test_the_newest_run_is_the_one_that_began_last_whatever_the_clock_said_at_its_end() -> None:
    for number, ended in ((1, BEGAN + 9_000_000), (2, BEGAN)):
        last_written(make_run(f"176400000000{number}-rover-{number}"), ended)
    assert last_ended().startswith("; the last run here, rover-2, ended ")


def test_the_last_run_is_the_one_that_ended_last_though_a_refused_one_began_meanwhile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number, ended_s in ((1, 90), (2, 30), (3, 60)):
        run_dir = make_run(f"176400000000{number}-rover-{number}")
        (run_dir / "logs" / "rover.log").write_text("here")
        last_written(run_dir, BEGAN + ended_s * 1_000_000)
    assert last_ended().startswith("; the last run here, rover-1, ended ")
    for name in (None, "rover"):
        assert run_id_of(find_run_dir(name)) == "rover-1"
        assert "rover-3, the newest run, ended before: rover-1 is meant" in capsys.readouterr().err


def test_who_names_a_run_that_has_ended_hears_how() -> None:
    last_written(make_run("1764000000001-rover-7"), BEGAN)
    last_written(make_run("1764000000002-arm-8"), BEGAN)
    how = r"run rover-7, ended [-0-9]+ [:0-9]+: it did not begin \(`dimos-streams logs rover-7` "
    for name in ("rover", "rover-7"):
        with pytest.raises(NoRunError, match=f"^no run lives; {how}"):
            find_run(name)
    with pytest.raises(NoRunError, match=r"^no run lives; the last run here, arm-8, ended "):
        find_run("nobody")
    living = living_record(make_run("1764000000003-walker-9")).model_copy(update={"blueprint": "walker"})
    write(living)
    with pytest.raises(UserError, match=rf"^no living run is called 'rover' \(living: {living.run_id}\); {how}"):
        find_run("rover", alone=True)
    with pytest.raises(UserError, match=r"called 'nobody' \(living: [^;]+\)$"):
        find_run("nobody")
