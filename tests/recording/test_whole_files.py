"""What is made of a log takes its place once it is whole: an error leaves what was there, and nothing else."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.cli.system import signals
from dimos_streams.common.process.run_owner import OWNER_FILE
from dimos_streams.errors import DimosStreamsError, UserError, cannot_write
from dimos_streams.recording.files.whole import whole_file
from tests.helpers import fill
from tests.recording.logs import some_events, write_log

OLDER = b"older"
WAYS = [
    ("cut", "-o"),
    ("report", "-o"),
    ("export", "--csv", "/module_status", "-o"),
    ("export", "--mcap"),
]
ways = pytest.mark.parametrize("way", WAYS, ids=["cut", "report", "csv", "mcap"])


def arguments(way: tuple[str, ...], log: Path, target: str | Path) -> tuple[str | Path, ...]:
    command, *options = way
    return "recording", command, log, *options, target


@ways
def test_a_full_disk_leaves_the_older_file_and_is_no_mistake_of_who_typed(
    way: tuple[str, ...], small_disk: Path, mission_log: Path, command: Any
) -> None:
    target = small_disk / "older"
    before = some_events(10)
    write_log(target, before)
    older = target.read_bytes()
    fill(small_disk)
    there = sorted(small_disk.iterdir())
    code, out, err = command(*arguments(way, mission_log, target))
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == f"error: '{target}' can't be written: No space left on device"
    assert "Traceback" not in err
    assert target.read_bytes() == older
    assert sorted(small_disk.iterdir()) == there


@ways
def test_a_read_only_disk_is_no_mistake_of_who_typed_either(
    way: tuple[str, ...], small_disk: Path, mission_log: Path, command: Any
) -> None:
    older = write_log(small_disk / "older", some_events(10))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for target in (older, small_disk / "new"):
        code, _, err = command(*arguments(way, mission_log, target))
        assert (code, err.splitlines()[-1]) == (1, f"error: '{target}' can't be written: Read-only file system")


@ways
def test_a_pipe_of_that_name_is_refused(
    way: tuple[str, ...], tmp_path: Path, mission_log: Path, command: Any
) -> None:
    target = tmp_path / "pipe"
    os.mkfifo(target)
    code, _, err = command(*arguments(way, mission_log, target))
    assert (code, err.splitlines()[-1]) == (2, f"error: '{target}' can't be written: it is no regular file")


@ways
def test_a_new_file_replaces_the_older_one_and_is_read_by_whoever_read_that(
    way: tuple[str, ...], tmp_path: Path, mission_log: Path, command: Any
) -> None:
    link, target = tmp_path / "link", tmp_path / "older"
    write_log(target, some_events(10))
    target.chmod(0o640)
    link.symlink_to(target.name)
    older = target.read_bytes()
    code, _, err = command(*arguments(way, mission_log, link))
    assert code == 0, err
    assert target.read_bytes() not in (b"", older)
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == [link, target]
    assert link.is_symlink()


@pytest.mark.feature("H4")
@pytest.mark.parametrize("there", [True, False])
def test_no_link_of_another_user_leads_to_what_is_replaced(
    there: bool, tmp_path: Path, strangers_link: Callable[[Path, str], None]
) -> None:
    link, theirs, own = tmp_path / "report.html", tmp_path / "theirs", tmp_path / "own"
    link.symlink_to(own.name)
    if there:
        with whole_file(link) as path:
            path.write_bytes(b"mine")
    link.unlink()
    link.symlink_to(theirs.name)
    strangers_link(theirs, own.name)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    refused = pytest.raises(UserError, match=r"report\.html' can't be written: the file, or a link to it, belongs")
    with refused, whole_file(link) as path:
        path.write_bytes(b"another")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_pipe_of_this_process_and_devices_are_written_themselves(
    tmp_path: Path, mission_log: Path, command: Any
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with whole_file(Path(f"/dev/fd/{writer}")) as path:
        path.write_bytes(OLDER)
    assert os.read(reader, 100) == OLDER
    os.close(reader)
    os.close(writer)
    assert command("recording", "report", mission_log, "-o", "/dev/null")[0] == 0
    assert command("recording", "report", mission_log, "-o", "/dev/full")[0] == 1
    assert command("recording", "report", mission_log, "-o", tmp_path)[0] == 2
    assert command("recording", "report", mission_log, "-o", tmp_path / "no" / "folder")[0] == 2


def test_a_file_that_is_open_here_is_written_behind_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mission_log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "older"
    with target.open("wb", buffering=0) as file, open(file.fileno(), "w", closefd=False) as output:
        monkeypatch.setattr("sys.stdout", output)
        file.write(OLDER)
        name = f"/dev/fd/{file.fileno()}"
        code = run_command(["recording", "report", str(mission_log), "-o", name])
        file.write(OLDER)
        monkeypatch.undo()
    text = target.read_bytes()
    assert (code, text.startswith(OLDER + b"<!doctype"), text.endswith(b"</html>\n" + OLDER)) == (0, True, True)
    assert f"{name}: " in capfd.readouterr().err, "and not within the file"


def test_what_a_killed_process_has_left_goes_when_the_next_file_is_made_there(tmp_path: Path) -> None:
    target = tmp_path / "new.html"
    with whole_file(target) as path:
        path.write_bytes(b"whole")
        left = path.parent.with_name(f"{path.parent.name}-killed")
        shutil.copytree(path.parent, left)
        owner = left / OWNER_FILE  # which nobody has locked: a process that is killed has no locks
        owner.write_text(owner.read_text().replace(path.parent.name, left.name))
        with whole_file(tmp_path / "other.html") as other:
            assert sorted(tmp_path.iterdir()) == sorted([path.parent, other.parent])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new.html", "other.html"]
    assert target.read_bytes() == b"whole"


def test_a_file_is_made_whole_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with whole_file(tmp_path / "owner.json") as path:
        path.write_bytes(b"whole")
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"whole"]


def test_a_signal_leaves_nothing_half_done(tmp_path: Path) -> None:
    target = tmp_path / "older"
    target.write_bytes(OLDER)

    def write_half() -> None:
        with signals.unwinding(), whole_file(target) as path:
            path.write_bytes(b"half")
            signals.deliver(signal.SIGINT)

    with pytest.raises(signals.Interrupted):
        write_half()
    assert [(path, path.read_bytes()) for path in tmp_path.iterdir()] == [(target, OLDER)]


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((number, DimosStreamsError) for number in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)),
        *((number, UserError) for number in (errno.ENOENT, errno.EISDIR, errno.EACCES)),
    ],
)
def test_who_can_mend_what_cannot_be_written(number: int, kind: Callable[..., Exception]) -> None:
    error = cannot_write("a", OSError(number, os.strerror(number)))
    assert (type(error), str(error)) == (kind, f"a can't be written: {os.strerror(number)}")
