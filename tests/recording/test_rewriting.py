"""A log that is written anew takes the old one's place once it is whole: rights and links stay as they were."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dimos_streams.errors import DimosStreamsError, UserError
from dimos_streams.recording.writer import LogWriter
from dimos_streams.regression.rewrite import Rewriter
from dimos_streams.regression.tolerances import EXACT
from tests.recording.logs import raw, read_log, some_events, write_log

EVENTS = some_events(20)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "a.lcmlog", some_events(10, seed=1))


close = LogWriter.close


def full(*args: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_at_the_end(writer: LogWriter) -> NoReturn:
    close(writer)
    full()


def rewrite(log: Path) -> None:
    with Rewriter(log, EXACT) as rewriter:
        for number, event in enumerate(EVENTS):
            rewriter.add(*event)
            if number == len(EVENTS) // 2:
                rewriter.flush(event[0])
        rewriter.finish()


def test_nobody_may_read_it_who_could_not_read_the_old_one(log: Path) -> None:
    log.chmod(0o600)
    with Rewriter(log, EXACT) as rewriter:
        (beside,) = (each for each in log.parent.iterdir() if each.is_dir())
        files = (each for each in log.parent.rglob("*") if each.suffix == log.suffix)
        assert [each.stat().st_mode & 0o777 for each in (beside, *files)] == [0o700, 0o600, 0o600]
        rewriter.finish()
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_link_to_a_log_leads_to_the_new_one(log: Path, tmp_path: Path) -> None:
    link = tmp_path / "newest.lcmlog"
    link.symlink_to(log.name)
    rewrite(link)
    assert link.is_symlink()
    assert raw(read_log(log)) == EVENTS


def test_a_log_that_a_recorder_writes_is_left_to_it(log: Path) -> None:
    """What it records while the modules are tested would be lost."""
    with LogWriter(log, append=True) as recorder:
        with pytest.raises(UserError, match=r"a\.lcmlog' can't be written: somebody else is writing it"):
            rewrite(log)
        recorder.write(*EVENTS[-1])
    assert raw(read_log(log))[-1] == EVENTS[-1]
    assert [each.name for each in log.parent.iterdir()] == [log.name]
    rewrite(log)
    rewrite(log)
    assert raw(read_log(log)) == EVENTS


def test_nobody_begins_to_record_into_a_log_that_is_written_anew(log: Path) -> None:
    with Rewriter(log, EXACT) as rewriter:
        with pytest.raises(UserError, match="somebody else is writing it"):
            LogWriter(log, append=True).open()
        rewriter.finish()


def test_no_link_of_another_user_leads_to_a_log_that_is_written_anew(
    log: Path, strangers_link: Callable[[Path, str], None]
) -> None:
    before = log.read_bytes()
    strangers_link(log.with_name("link.lcmlog"), log.name)
    with pytest.raises(UserError, match="a link to it, belongs to user"):
        rewrite(log.with_name("link.lcmlog"))
    assert log.read_bytes() == before


@pytest.mark.parametrize(("name", "fault"), [("write", full), ("close", full_at_the_end)])
def test_a_full_disk_leaves_the_old_one_and_nothing_else(
    name: str, fault: Callable[..., NoReturn], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = log.read_bytes()
    monkeypatch.setattr(LogWriter, name, fault)
    with pytest.raises(DimosStreamsError, match="No space left on device") as raised:
        rewrite(log)
    assert str(raised.value).startswith(f"log {str(log)!r} can't be written")
    assert not isinstance(raised.value, UserError)
    assert [each.read_bytes() for each in log.parent.iterdir()] == [before]


def give_up(log: Path) -> None:
    with Rewriter(log, EXACT) as rewriter:
        rewriter.add(*EVENTS[0])
        rewriter.flush(EVENTS[1][0])
        raise KeyboardInterrupt


def test_a_replay_that_is_given_up_leaves_the_old_one_and_nothing_else(log: Path) -> None:
    before = log.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        give_up(log)
    assert [each.read_bytes() for each in log.parent.iterdir()] == [before]
