"""Checkpoints of a journal's write-ahead log: what they leave, and that only their thread waits for the disk."""

from __future__ import annotations

import asyncio
import functools
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ParamSpec

import pytest

from dimos_streams.journal.query import Query
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event

P = ParamSpec("P")

_FRAME_BYTES = 32 + 24 + 4096


def live_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on a loop whose threads take real time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@live_loop
async def test_a_checkpoint_empties_the_log_and_an_idle_journal_has_none(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    copies = 0

    async def in_thread(copy: Callable[[], None]) -> None:
        nonlocal copies
        copies += 1
        await asyncio.to_thread(copy)

    journal.append([event(number) for number in range(1, 1001)])
    before = path.stat().st_size
    await journal.checkpoint(in_thread)
    assert path.stat().st_size > before
    assert log_of(path).stat().st_size == _FRAME_BYTES, "it has been begun: the next commit is not its first"
    await journal.checkpoint(in_thread)
    assert copies == 1
    journal.append([event(1001)])
    await journal.checkpoint(in_thread)
    assert copies == 2
    journal.close()
    assert not log_of(path).exists()
    assert opened(path).last_offset == 1001


@live_loop
async def test_what_is_written_during_a_checkpoint_goes_behind_the_log(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    seqs = iter(range(1, 100_000))

    def append() -> None:
        journal.append([event(next(seqs)) for _ in range(10)])

    async def at_once(copy: Callable[[], None]) -> None:
        append()
        await asyncio.to_thread(copy)

    async def just_before_it_is_done(copy: Callable[[], None]) -> None:
        await asyncio.to_thread(copy)
        append()

    append()
    for in_thread in (at_once, just_before_it_is_done):
        head, size = log_of(path).read_bytes()[:32], log_of(path).stat().st_size
        await journal.checkpoint(in_thread)
        append()
        assert log_of(path).read_bytes()[:32] == head, "the same log"
        assert log_of(path).stat().st_size > size
    await journal.checkpoint(asyncio.to_thread)
    assert log_of(path).stat().st_size == _FRAME_BYTES


@live_loop
async def test_a_long_log_is_checkpointed_again_until_nothing_is_written_meanwhile(
    tmp_path: Path, opened: OpenJournal
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(seq, text="x" * 4000) for seq in range(1, 2000)])
    busy = iter([True, True, False])

    async def in_thread(copy: Callable[[], None]) -> None:
        await asyncio.to_thread(copy)
        if next(busy):
            journal.append([event(5000)])

    await journal.checkpoint(in_thread)
    assert next(busy, None) is None
    assert log_of(path).stat().st_size == _FRAME_BYTES


@live_loop
async def test_a_journal_whose_file_is_left_meanwhile_is_left_alone(tmp_path: Path, opened: OpenJournal) -> None:
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(1)])

    async def in_thread(copy: Callable[[], None]) -> None:
        journal.close()
        await asyncio.to_thread(copy)

    await journal.checkpoint(in_thread)
    await journal.checkpoint(in_thread)
    assert opened(path).last_offset == 1


@live_loop
async def test_a_power_cut_after_a_checkpoint_leaves_all_that_it_moved(tmp_path: Path, opened: OpenJournal) -> None:
    """The disk may have the new log's pages in any order, or still all of the old log."""
    path = tmp_path / "journal.sqlite"
    journal = opened(path)
    journal.append([event(seq) for seq in range(1, 101)])
    old = b""

    async def in_thread(copy: Callable[[], None]) -> None:
        nonlocal old
        await asyncio.to_thread(copy)
        old = log_of(path).read_bytes()

    await journal.checkpoint(in_thread)
    file = path.read_bytes()
    journal.append([event(101)])
    journal.append([event(102)])
    new = log_of(path).read_bytes()
    pages = [new[at : at + 4096] for at in range(0, len(new), 4096)]
    cuts = [b"".join(b"\0" * len(page) if n == lost else page for n, page in enumerate(pages)) for lost in range(4)]
    for number, log in enumerate((b"", old, *cuts)):
        cut = tmp_path / f"cut{number}.sqlite"
        cut.write_bytes(file)
        log_of(cut).write_bytes(log)
        after = opened(cut)
        read = after.read(Query(0), 1000, 1 << 30)
        assert [entry.offset for entry in read.entries] == list(range(1, after.last_offset + 1))
        assert 100 <= after.last_offset < 102
        after.close()
        with sqlite3.connect(cut) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        db.close()


_PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from dimos_streams.journal.journal import Journal
from tests.bridge.scene import event

async def main():
    journal = Journal(Path(sys.argv[1]))
    journal.open()
    os.access("begin", os.F_OK)
    for seq in range(1, 200):
        journal.append([event(seq)])
        if seq % 20 == 0:
            await journal.checkpoint(asyncio.to_thread)
    os.access("end", os.F_OK)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_loop_never_waits_for_the_disk(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    calls = "trace=fsync,fdatasync,sync_file_range,msync,access,faccessat,faccessat2"
    command = [
        "strace",
        "-f",
        "-o",
        str(trace),
        "-e",
        calls,
        sys.executable,
        "-c",
        _PROGRAM,
        str(tmp_path / "j.sqlite"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if ran.returncode and "ptrace" in ran.stderr:
        pytest.skip(f"processes can't be traced here: {ran.stderr[:200]}")
    assert ran.returncode == 0, ran.stderr
    lines = trace.read_text().splitlines()
    begin, end = (next(n for n, line in enumerate(lines) if f'"{name}"' in line) for name in ("begin", "end"))
    loop = lines[begin].split()[0]
    waiting = [line for line in lines[begin:end] if re.search("sync", line)]
    assert len(waiting) >= 10, "checkpoints do wait"
    assert [line for line in waiting if line.split()[0] == loop] == []
