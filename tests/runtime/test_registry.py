"""The registry keeps the newest ended runs, and what a run writes is its user's alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from dimos_streams import clock
from dimos_streams.cli.terminal.log_files import find_run_dir
from dimos_streams.common.process.ownership import stranger_with
from dimos_streams.common.process.run_owner import OWNER_FILE, RunOwner, is_ended_run, process_start
from dimos_streams.errors import NoRunError, UserError
from dimos_streams.runtime.registry import runs, write
from dimos_streams.runtime.run_directories import (
    keep_private,
    new_run_dir,
    run_dirs,
    state_dir,
    why_no_run,
)
from tests.helpers import until
from tests.runtime.run_records import living_record, make_run


def test_a_process_that_has_ended_does_not_live_until_its_parent_looks() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process_start(process.pid) is not None
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_start(process.pid) is None


def test_doctor_says_why_no_run_could_be_kept_and_makes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, why in (("/proc/x", "No such file"), ("file/state", "Not a directory"), ("link/state", "No such file")):
        monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path / name))
        assert why_no_run().startswith(f"cannot write to {tmp_path / name}/runs: {why}")
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path / "\udcff"))
    assert "not valid UTF-8" in why_no_run()
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path / "new" / "state"))
    assert why_no_run() == ""
    monkeypatch.setattr("dimos_streams.runtime.run_directories.stranger_with", lambda path: 7)
    assert "it belongs to user 7" in why_no_run()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_an_empty_home_is_none_and_a_home_that_nobody_knows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIMOS_STREAMS_STATE_DIR")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: SimpleNamespace(pw_dir="/home/me"))
    for home, state_home, directory in (
        ("", "", "/home/me/.local/state/dimos-streams"),
        ("/home/you", "", "/home/you/.local/state/dimos-streams"),
        ("/home/you", "~/state", "/home/you/state/dimos-streams"),
        ("/home/you", "/state", "/state/dimos-streams"),
        ("/home/you", "state", "/home/you/.local/state/dimos-streams"),
    ):
        monkeypatch.setenv("HOME", home)
        monkeypatch.setenv("XDG_STATE_HOME", state_home)
        assert str(state_dir()) == directory
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", "~/runs")
    assert str(state_dir()) == "/home/you/runs"
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", "~no-such-user/runs")
    with pytest.raises(UserError, match="'~no-such-user/runs': nobody knows that home directory"):
        state_dir()
    assert why_no_run().startswith("runs can keep no files in '~no-such-user/runs'")


def test_only_ended_runs_are_forgotten() -> None:
    ended = [make_run(f"{number:04}-rover-7") for number in range(1, 25)]
    living = make_run("0000-rover-1", lives=True)
    runs = state_dir() / "runs"
    foreign = runs / "0000-holiday-pictures-2019"
    foreign.mkdir()
    (foreign / "beach.jpg").write_bytes(b"sand")
    copied = runs / "0000-rover-7"
    copied.mkdir()
    (copied / "owner.json").write_text((ended[0] / "owner.json").read_text())
    elsewhere = state_dir() / "elsewhere"
    elsewhere.mkdir()
    (runs / "0000-link-1").symlink_to(elsewhere, target_is_directory=True)
    (runs / "a file").write_text("")
    (runs / "0000-broken-1").mkdir()
    (runs / "0000-broken-1" / "owner.json").write_text("[")

    own = new_run_dir("rover")

    assert [path for path in ended if not path.exists()] == ended[:4]
    kept = [living, foreign / "beach.jpg", copied, elsewhere, runs / "0000-link-1", runs / "a file", own / "logs"]
    assert [path for path in kept if not path.exists()] == []
    assert (runs / "0000-broken-1").exists()


def test_starts_that_fail_drive_out_no_run_that_was_ready() -> None:
    ran = [make_run(f"{number:04}-rover-7") for number in range(1, 21)]
    failed = [make_run(f"{number:04}-rover-7", was_ready=False) for number in range(21, 50)]
    new_run_dir("rover")
    assert [path for path in ran if not path.exists()] == []
    assert [path for path in failed if path.exists()] == failed[-5:]


def test_runs_are_newer_or_older_by_when_they_began_wherever_the_clock_is_set_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = [make_run(f"{number:013}-rover-7") for number in range(1_000_000_000_001, 1_000_000_000_021)]
    began = []
    for utime in (1_000_000_000_030_000, 1_000_000_000_005_000, 5_000, 1_000_000_000_005_000):
        monkeypatch.setattr(clock, "utime", lambda utime=utime: utime)
        began.append(new_run_dir("rover"))
        assert find_run_dir(None) == began[-1]
    assert [path.exists() for path in (*before, *began)] == [True] * 24
    assert sorted(began) == began


def test_what_leads_nowhere_among_the_runs_keeps_none_from_beginning() -> None:
    began = new_run_dir("rover")
    (began.parent / "9000000000000-rover-7").symlink_to("nowhere")
    newer = new_run_dir("rover")
    assert newer.name > began.name
    assert newer in run_dirs()


def test_a_number_after_which_none_comes_is_no_bound() -> None:
    make_run("9999999999999-rover-7")
    assert new_run_dir("rover").name < "9999999999999"
    assert new_run_dir("rover").name < "9999999999999"


def test_a_run_lives_as_long_as_what_it_has_forked() -> None:
    """Also if its first process, whose number it has, is killed."""
    code = "import os; from dimos_streams.runtime.run_directories import new_run_dir; d = new_run_dir('rover')\n"
    code += "reader, writer = os.pipe()\nif os.fork(): os._exit(0)\nprint(d, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().decode().strip())
        process.wait()
        assert not is_ended_run(path)
        process.communicate(b"\n")
        asyncio.run(until(lambda: is_ended_run(path)))


@pytest.mark.skipif(os.getuid() != 0, reason="PID namespaces need root")
def test_a_run_in_another_container_deletes_no_living_one() -> None:
    living = living_record()
    ended = [make_run(f"9{number:012}-rover-7") for number in range(25)]
    code = (
        "from dimos_streams.runtime.registry import runs\n"
        "from dimos_streams.runtime.run_directories import new_run_dir\n"
        "print(len(runs()), new_run_dir('rover'))"
    )
    container = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", code]
    made = subprocess.run(container, stdout=subprocess.PIPE, text=True)
    if made.returncode:
        pytest.skip("no PID namespaces here")
    seen, path = made.stdout.split()
    assert seen == "0", "nothing there can end its processes"
    assert runs() == [living]
    assert living.run_dir.exists()
    assert [each.exists() for each in ended] == [False] * 5 + [True] * 20
    assert is_ended_run(Path(path)), "and what ended there has ended everywhere"


@pytest.mark.feature("F6")
@pytest.mark.parametrize("name", [".", "run.json"])
def test_a_record_that_others_may_write_names_no_run(name: str, caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0o022)
    try:
        keep_private()
        record = living_record()
    finally:
        os.umask(before)
    assert runs() == [record]
    opened = record.run_dir / name
    opened.chmod(0o777)
    assert runs() == []
    assert "others may write" in caplog.text
    opened.chmod(0o700)
    assert runs() == [record]
    if os.getuid() == 0:
        os.chown(opened, 65534, -1)
        assert runs() == []
        assert "belongs to user 65534" in caplog.text


def test_a_file_in_the_place_of_runs_is_said_and_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path / "file"))
    why = rf"^the runs in {tmp_path}/file/runs can't be looked for: Not a directory; name another state directory"
    for look in (runs, run_dirs):
        with pytest.raises(UserError, match=why):
            look()


def test_a_state_directory_whose_path_is_no_utf8_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    with pytest.raises(UserError) as raised:
        new_run_dir("rover")
    assert str(raised.value) == (
        f"no run can be kept in {tmp_path}/\\xff/runs: the path is not valid UTF-8, as it must be;"
        " DIMOS_STREAMS_STATE_DIR can name another"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may delete everything")
def test_a_run_that_cannot_be_deleted_stops_nobody() -> None:
    stuck = make_run("0001-rover-7")
    for number in range(2, 24):
        make_run(f"{number:04}-rover-7")
    stuck.chmod(0o500)
    try:
        assert new_run_dir("rover").exists()
    finally:
        stuck.chmod(0o700)


@pytest.mark.feature("H4")
@pytest.mark.parametrize(("above", "made"), [(0o1777, 0o1777), (0o755, 0o755), (0o777, 0o755)])
def test_runs_are_of_all_users_where_the_state_directory_is(
    above: int, made: int, request: pytest.FixtureRequest
) -> None:
    """As in a container that any user runs, and whose volume the next one has again."""
    request.addfinalizer(partial(os.umask, os.umask(0o022)))
    state_dir().mkdir()
    state_dir().chmod(above)
    run = new_run_dir("rover")
    assert (state_dir() / "runs").stat().st_mode & 0o7777 == made
    assert (run.stat().st_mode | (run / "logs").stat().st_mode) & 0o022 == 0, "but each run is its user's"


@pytest.mark.feature("H4")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("strangers", ["", "runs"])
def test_no_run_is_kept_where_another_user_could_replace_its_files(
    strangers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state_dir() / "runs").mkdir(parents=True)
    directory = state_dir() / strangers
    os.chown(directory, 65534, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(UserError, match=rf"^no run can be kept in {directory}: it belongs to user 65534"):
        new_run_dir("rover")
    assert list((state_dir() / "runs").iterdir()) == []
    os.chown(directory, 4242, -1)
    assert new_run_dir("rover").exists()


@pytest.mark.feature("H4")
def test_a_run_begins_in_no_directory_that_somebody_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of runs can be guessed, and where all users may write one could make the directory of another's run."""
    monkeypatch.setattr("dimos_streams.runtime.run_directories._next_number", lambda: 7)
    guessed = state_dir() / "runs" / f"{7:013d}-rover-{os.getpid()}"
    guessed.mkdir(parents=True)
    with pytest.raises(UserError, match=rf"^cannot write to {guessed}: File exists; DIMOS_STREAMS_STATE_DIR can"):
        new_run_dir("rover")
    assert list(guessed.iterdir()) == []


@pytest.mark.feature("H4")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_record_is_not_renewed_in_a_directory_that_another_user_put_in_the_place_of_the_runs() -> None:
    record = living_record()
    os.chown(record.run_dir, 65534, -1)
    (record.run_dir / "run.json").unlink()
    with pytest.raises(FileExistsError):
        write(record)
    assert not (record.run_dir / "run.json").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a link away")
@pytest.mark.parametrize("name", ["own", "nowhere"])
def test_who_owns_a_link_could_lead_it_elsewhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    os.chown(tmp_path / "own", 4242, -1)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / name)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert stranger_with(link) is None, "root's"
    os.lchown(link, 65534, -1)
    assert stranger_with(link) == 65534
    for number, leads_to in enumerate(["link", str(link), "../" + tmp_path.name + "/first"]):
        (tmp_path / ("first", "second", "third")[number]).symlink_to(leads_to)
    assert [stranger_with(tmp_path / first) for first in ("first", "second", "third")] == [65534] * 3
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="Too many levels"):
        stranger_with(tmp_path / "circle")


@pytest.mark.feature("H4")
def test_the_newest_run_is_none_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = new_run_dir("rover")
    assert find_run_dir(None) == ours
    monkeypatch.setattr(os, "geteuid", lambda: ours.stat().st_uid + 1)
    with pytest.raises(NoRunError, match="there are no runs yet"):
        find_run_dir(None)


@pytest.mark.feature("H4")
def test_without_a_name_a_living_run_is_meant_and_else_the_newest_that_has_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    living, refused = make_run("0001-rover-1", lives=True), make_run("0002-rover-2")
    assert find_run_dir(None) == refused
    assert capsys.readouterr().err == ""
    (living / "logs" / "robot.log").write_text("ready")
    assert find_run_dir(None) == find_run_dir("rover") == living
    said = "rover-2, the newest run, has logged nothing: rover-1 is meant\n"
    assert capsys.readouterr().err == 2 * said
    (refused / "logs" / "robot.log").write_text("ready")
    assert find_run_dir(None) == refused
    living_record(living)
    assert find_run_dir(None) == living
    assert find_run_dir("2") == find_run_dir("rover-2") == refused, "also by its process id"
    ended = "`dimos-streams status --all` lists those that have ended"
    with pytest.raises(UserError) as caught:
        find_run_dir("demo-999")
    assert str(caught.value) == f"no run is called 'demo-999' (living: 0001-rover-1; {ended})"


@pytest.mark.feature("H4")
def test_a_damaged_record_of_one_run_hides_no_other() -> None:
    """Whoever stops robots asks for all living runs."""
    damaged, record = make_run("0001-rover-1"), living_record()
    (damaged / "run.json").write_bytes(b"\xff\xfe")
    assert runs() == [record]


def test_what_another_user_or_a_pipe_says_of_a_run_counts_for_nothing(tmp_path: Path) -> None:
    run = tmp_path / "1-x-2"
    run.mkdir()
    os.mkfifo(run / OWNER_FILE)
    assert not is_ended_run(run), "and nobody waits for a writer"
    (run / OWNER_FILE).unlink()
    (run / OWNER_FILE).write_text(RunOwner(directory=run.name).model_dump_json())
    assert is_ended_run(run)
    if os.geteuid() == 0:
        os.chown(run, 12345, -1)
        assert not is_ended_run(run)
