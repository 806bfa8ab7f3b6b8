"""What lies under a recording's name: older recordings are replaced once a run has begun, and nothing else is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.errors import UserError
from dimos_streams.recording.files.claim import part_path
from dimos_streams.recording.files.older import replacing
from dimos_streams.recording.writer import LogWriter
from tests.recording.logs import START, some_events, write_log

LOG, PART, LATER = "walk.lcmlog", "walk.1.lcmlog", "walk.3.lcmlog"
TEXT = b"Dear reader"
STRANGER = 65534
RUN = ("run", "tests/cli/rover.yaml", "--virtual-time", "--duration", "1", "--record")


def text(path: Path) -> None:
    path.write_bytes(TEXT)


def link_to_text(path: Path) -> None:
    text(path.with_name("letter.txt"))
    path.symlink_to("letter.txt")


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A recording in two parts."""
    for number in range(2):
        write_log(part_path(tmp_path / LOG, number), some_events(10, seed=number))
    return tmp_path / LOG


@pytest.mark.parametrize("mode", ["--virtual-time", "--in-process", "--json"])
@pytest.mark.parametrize(
    ("there", "name", "named", "why"),
    [
        (text, LOG, LOG, "it is no LCM log; nothing else is replaced by one"),
        (text, PART, PART, "it is no LCM log"),
        (link_to_text, LOG, "letter.txt", "it is no LCM log"),
        (os.mkfifo, LOG, LOG, "it is no regular file"),
        (os.mkfifo, PART, PART, "it is no regular file"),
        (Path.mkdir, LOG, LOG, "Is a directory"),
    ],
)
def test_what_is_no_log_is_refused_before_the_run(
    tmp_path: Path,
    command: Any,
    mode: str,
    there: Callable[[Path], None],
    name: str,
    named: str,
    why: str,
) -> None:
    there(tmp_path / name)
    before = contents(tmp_path)
    code, out, err = command("run", "tests/cli/rover.yaml", mode, "--duration", "1", "--record", tmp_path / LOG)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert f"log '{tmp_path}/{named}' can't be written: {why}" in line
    assert contents(tmp_path) == before


def test_where_a_later_part_would_come_nothing_else_may_lie(tmp_path: Path, command: Any) -> None:
    text(tmp_path / LATER)
    code, _, err = command(*RUN, tmp_path / LOG, "--record-split", "0.001")
    assert (code, len(err.splitlines())) == (2, 1)
    assert f"{LATER}' can't be written: it is no LCM log" in err
    assert contents(tmp_path) == {LATER: TEXT}
    assert command(*RUN, tmp_path / LOG)[0] == 0
    assert (tmp_path / LATER).read_bytes() == TEXT


def test_a_part_that_comes_replaces_nothing_else(tmp_path: Path) -> None:
    text(tmp_path / PART)
    with LogWriter(tmp_path / LOG, split_bytes=1) as writer, pytest.raises(OSError, match="it is no LCM log"):
        writer.write(START, "/x", b"data")
    with pytest.raises(OSError, match="it is no LCM log"):
        writer.resume()
    assert (tmp_path / PART).read_bytes() == TEXT


def strangers_file(path: Path) -> None:
    path.touch()
    os.chown(path, STRANGER, -1)


def strangers_link(path: Path) -> None:
    own = path.with_name("precious.lcmlog")
    write_log(own, some_events(10))
    path.symlink_to(own.name)
    os.chown(path, STRANGER, -1, follow_symlinks=False)


@pytest.mark.feature("H4")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("there", [strangers_file, strangers_link])
@pytest.mark.parametrize("name", [LOG, LATER])
def test_nothing_is_recorded_into_what_another_user_has_put_there(
    tmp_path: Path, there: Callable[[Path], None], name: str, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all users may write, one could read what is recorded, or have a log of this user's replaced by it."""
    there(tmp_path / name)
    before = contents(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    code, out, err = command(*RUN, tmp_path / LOG, "--record-split", "0.001")
    assert (code, out) == (2, "")
    why = f"can't be written: the file, or a link to it, belongs to user {STRANGER}"
    assert f"error: log '{tmp_path / name}' {why}" in err
    assert contents(tmp_path) == before


@pytest.mark.feature("H4")
def test_no_file_is_made_where_another_users_link_leads(
    tmp_path: Path, strangers_link: Callable[[Path, str], None]
) -> None:
    (tmp_path / LOG).symlink_to("theirs")
    strangers_link(tmp_path / "theirs", "new")
    with pytest.raises(UserError, match=f"belongs to user {STRANGER}"):
        LogWriter(tmp_path / LOG).open()
    assert not (tmp_path / "new").exists()


@pytest.mark.feature("H4")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("there", [strangers_file, strangers_link])
def test_a_part_that_another_user_makes_while_it_is_recorded_is_not_written(
    tmp_path: Path, there: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with LogWriter(tmp_path / LOG, split_bytes=1) as writer:
        there(tmp_path / PART)
        before = (tmp_path / PART).read_bytes()
        with pytest.raises(PermissionError, match=f"belongs to user {STRANGER}"):
            writer.write(START, "/x", b"data")
    assert (tmp_path / PART).read_bytes() == before


def test_the_older_recording_is_replaced_with_its_parts(older: Path, command: Any) -> None:
    before = older.read_bytes()
    link = older.with_name("link.lcmlog")
    link.symlink_to(older.name)
    assert command(*RUN, link)[0] == 0
    assert contents(older.parent).keys() == {older.name, link.name}
    assert link.is_symlink()
    assert older.read_bytes() != before


def test_it_is_not_by_a_run_that_does_not_start(older: Path, command: Any) -> None:
    before = contents(older.parent)
    code, _, err = command(*RUN, older, "--set", "rover.fail_at_start=no wheels")
    assert code == 1
    assert "no wheels" in err
    assert contents(older.parent) == before


@pytest.mark.parametrize("strangers", [0, 1])
def test_one_that_can_not_be_put_aside_is_named(older: Path, strangers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a part were another user's in a sticky directory, for all but root."""
    before = contents(older.parent)
    move = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if self == part_path(older, strangers):
            raise PermissionError(1, "Operation not permitted")
        return move(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    why = "can't be replaced: it can't be put aside: Operation not permitted; give --record another name"
    with pytest.raises(UserError, match=why), replacing(older):
        pass
    assert contents(older.parent) == before


def test_a_name_too_long_for_what_is_beside_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="File name too long"), replacing(tmp_path / f"{'x' * 245}.lcmlog"):
        pass


@pytest.mark.parametrize("starts", [False, True])
def test_nor_by_one_that_was_killed_while_it_started(older: Path, starts: bool) -> None:
    before = contents(older.parent)
    for number, name in enumerate((".walk.older.lcmlog", ".walk.older.1.lcmlog")):
        part_path(older, number).rename(older.with_name(name))
    write_log(older, [])
    if starts:
        with replacing(older):
            text(older)
        assert contents(older.parent) == {LOG: TEXT}
    else:
        with pytest.raises(ZeroDivisionError), replacing(older):
            1 / 0  # noqa: B018
        assert contents(older.parent) == before


@pytest.mark.parametrize("parts", [1, 2])
def test_a_log_that_somebody_is_writing_is_refused(older: Path, command: Any, parts: int) -> None:
    busy = "can't be written: somebody else is writing it"
    if parts == 1:
        older.with_name(PART).unlink()
    with LogWriter(older, append=True) as writer:
        assert writer.part == part_path(older, parts - 1)
        before = contents(older.parent)
        code, _, err = command(*RUN, older)
        assert (code, err) == (2, f"error: log '{writer.part}' {busy}\n")
        for append in (False, True):
            with pytest.raises(UserError, match=busy):
                LogWriter(writer.part, append=append).open()
        assert contents(older.parent) == before
    assert command(*RUN, older)[0] == 0


def test_of_runs_that_start_together_one_is_refused(older: Path) -> None:
    with replacing(older), pytest.raises(UserError, match="somebody else is writing it"), replacing(older):
        pass


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, command: Any) -> None:
    code, _, err = command(*RUN, tmp_path / "nowhere" / LOG)
    assert (code, len(err.splitlines())) == (2, 1)
    assert f"nothing can be written in '{tmp_path}/nowhere'" in err
