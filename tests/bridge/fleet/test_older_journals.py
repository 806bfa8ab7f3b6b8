"""A robot ships what its earlier runs have left: once, and again to a hub that has lost it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.fleet.run_journals import ROBOT_NOTE
from dimos_streams.bridge.fleet.shipping import older_journal_shipper
from dimos_streams.bridge.fleet.shipping.older_journal import OlderJournal
from dimos_streams.bridge.fleet.shipping.older_journal_shipper import OlderJournalShipper
from dimos_streams.common.process.run_owner import OWNER_FILE, RunOwner, own
from dimos_streams.journal.query import Query
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.fleet.robot import Robot, whole
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


@pytest.mark.parametrize("days", [29, 31])
async def test_a_hub_that_was_put_back_gets_what_it_lost_of_earlier_runs_of_the_last_thirty_days(
    days: int, tmp_path: Path, opened: OpenJournal
) -> None:
    hub = FakeHub()
    old = _robot_of(tmp_path / "1-old", opened, hub)
    old.journal.note(ROBOT_NOTE, "r1")
    old.happen(*range(1, 11))
    old.journal.close()
    robot = _robot_of(tmp_path / "2-now", opened, hub)
    robot.happen(1)
    async with robot.shipping(), _older(robot):
        await asyncio.sleep(5)
        assert hub.stored(old.name) == whole(1, 10)
        shipped = clock.utime() / 1e6 - days * 86_400
        os.utime(tmp_path / "1-old" / "journal.sqlite", (shipped, shipped))
        hub.journals.clear()
        await asyncio.sleep(190)
        hub.attempts = 0
        await asyncio.sleep(600)
    assert hub.attempts <= 11, "what it has again it is not asked for"
    written = (tmp_path / "1-old" / "journal.sqlite").stat().st_mtime
    assert (abs(written - shipped) > 1.0) == (days < 30), "the time of the last shipping counts"
    assert (hub.stored(robot.name), hub.stored(old.name)) == (whole(1, 1), whole(1, 10) if days < 30 else [])


@pytest.mark.slow
async def test_what_earlier_runs_have_left_is_shipped_beside_it(tmp_path: Path, opened: OpenJournal) -> None:
    hub, names = FakeHub(), []
    for run in ("1-old", "2-shipped", "3-other", "4-now"):
        _run_dir(tmp_path / run)
        robot = Robot(opened(tmp_path / run / "journal.sqlite"), hub)
        robot.journal.note(ROBOT_NOTE, "r2" if run == "3-other" else "r1")
        robot.happen(*range(1, 1001))
        names.append(robot.name)
        if run == "2-shipped":
            await robot.shipper.flush()
        if run != "4-now":
            robot.journal.close()
    shutil.copy(tmp_path / "1-old" / "journal.sqlite", tmp_path / "4-now" / "journal.sqlite.damaged-1")
    (tmp_path / "4-now" / "journal.sqlite.left-1").write_text("this is no database " * 100)
    async with robot.shipping(), _older(robot):
        await asyncio.sleep(60)
        assert list(hub.journals) == [names[1], names[3], names[0]], "what is new comes first"
        assert all(hub.stored(name) == whole(1, 1000) for name in (names[0], names[1], names[3]))
    hub.attempts = 0
    async with _older(robot):
        await asyncio.sleep(60)
        assert hub.attempts == 0, "nobody is asked for them again"


@pytest.mark.parametrize("when", ["before the run", "while it runs"])
async def test_a_hub_that_was_put_back_gets_earlier_journals_again_though_it_lacks_nothing_of_this_run(
    when: str, tmp_path: Path, opened: OpenJournal
) -> None:
    hub, process = FakeHub(), ["h/1"]
    for run in ("1-old", "2-now"):
        _run_dir(tmp_path / run)
        robot = Robot(opened(tmp_path / run / "journal.sqlite"), hub)
        robot.journal.note(ROBOT_NOTE, "r1")
        robot.happen(*range(1, 11))
        if run == "1-old":
            old = robot.name
            robot.journal.close()
    async with robot.shipping():
        async with _older(robot, lambda: process[0]):
            await asyncio.sleep(60)
            assert hub.stored(old) == whole(1, 10)
            if when == "while it runs":
                del hub.journals[old]
                process[0] = "h/2"
                await asyncio.sleep(130)
        if when == "before the run":
            del hub.journals[old]
            process[0] = "h/2"
        async with _older(robot, lambda: process[0]):
            await asyncio.sleep(60)
            assert hub.stored(old) == whole(1, 10)
        process[0] = "h/3"
        shipped = (tmp_path / "1-old" / "journal.sqlite").stat().st_mtime_ns
        async with _older(robot, lambda: process[0]):
            await asyncio.sleep(10)
            hub.attempts = 0
            await asyncio.sleep(50)
            assert hub.attempts <= 1, "each process is asked once, and the run's own journal each minute"
        assert (tmp_path / "1-old" / "journal.sqlite").stat().st_mtime_ns == shipped, "it was not shipped again"


async def test_calls_that_a_killed_run_has_left_open_are_closed_as_lost_once(
    tmp_path: Path, opened: OpenJournal
) -> None:
    hub = FakeHub()
    old = _robot_of(tmp_path / "1-old", opened, hub)
    old.journal.note(ROBOT_NOTE, "r1")
    calls = [CallState.from_event(event(1, "open", call_id=name)) for name in ("goes on", "has ended", "never began")]
    for call in calls[:2]:
        begun = event(1, "open", call_id=call.call_id)
        call.apply(begun)
        old.journal.append([begun], [call.row()])
    done = event(2, "close", call_id="has ended", data={"outcome": "completed"})
    calls[1].apply(done)
    old.journal.append([done, event(2, call_id="goes on")], [calls[1].row(), calls[2].row()])
    name = old.name
    robot = _robot_of(tmp_path / "2-now", opened, hub)
    async with robot.shipping(), _older(robot):
        await asyncio.sleep(60)
        assert len(hub.stored(name)) == 4, "whoever has the file open may be about to write more"
        old.journal.close()
        await asyncio.sleep(130)
        assert len(hub.stored(name)) == 5
    async with _older(robot):
        await asyncio.sleep(130)
    assert len(hub.stored(name)) == 5
    again = opened(tmp_path / "1-old" / "journal.sqlite")
    (last,) = again.read(Query(4), 10, 10_000).entries
    close = last.event
    assert (close.call_id, close.seq, close.type) == ("goes on", 3, "close")
    assert (close.text, close.data["outcome"]) == ("its run ended before the call did", "lost")
    assert again.call("goes on") is not None


async def test_neither_a_failing_disk_nor_a_run_that_is_removed_ends_the_search_for_earlier_runs(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = FakeHub()
    old = _robot_of(tmp_path / "1-old", opened, hub)
    old.journal.note(ROBOT_NOTE, "r1")
    old.happen(*range(1, 11))
    old.journal.close()
    robot = _robot_of(tmp_path / "2-now", opened, hub)
    find, errors = older_journal_shipper._of_earlier_runs, [OSError(errno.EIO, "Input/output error")]

    def fails_once(current: Path) -> Iterator[Path]:
        if errors:
            raise errors.pop()
        return find(current)

    async def lose(journal: OlderJournal) -> None:
        shutil.rmtree(journal.path.parent)

    monkeypatch.setattr(older_journal_shipper, "_of_earlier_runs", fails_once)
    async with robot.shipping(), _older(robot) as task:
        await asyncio.sleep(130)
        assert len(hub.stored(old.name)) == 10
        robot.shipper.losses += 1  # as if the hub was put back: it is asked of what was shipped, too
        monkeypatch.setattr(OlderJournal, "close_calls", lose)
        await asyncio.sleep(130)
        assert not task.done()


async def test_the_journal_of_a_run_that_lives_is_its_own(tmp_path: Path, opened: OpenJournal) -> None:
    hub = FakeHub()
    _run_dir(tmp_path / "1-other", lives=True)
    other = Robot(opened(tmp_path / "1-other" / "journal.sqlite"), hub)
    other.journal.note(ROBOT_NOTE, "r1")
    other.happen(*range(1, 11))
    robot = _robot_of(tmp_path / "2-now", opened, hub)
    robot.happen(1)
    async with robot.shipping(), _older(robot):
        await asyncio.sleep(130)
    assert list(hub.journals) == [robot.name]


async def test_a_journal_that_somebody_writes_is_not_renamed(tmp_path: Path, opened: OpenJournal) -> None:
    hub = FakeHub()
    old = _robot_of(tmp_path / "1-old", opened, hub)
    old.journal.note(ROBOT_NOTE, "r1")
    old.happen(*range(1, 11))
    name = old.name
    hub.journals[name] = dict.fromkeys(range(1, 12), "lost")  # so that it has to be another one
    robot = _robot_of(tmp_path / "2-now", opened, hub)
    async with robot.shipping(), _older(robot):
        await asyncio.sleep(60)
        assert _written_name(tmp_path / "1-old" / "journal.sqlite") == name
        old.journal.close()
        await asyncio.sleep(130)
    assert _written_name(tmp_path / "1-old" / "journal.sqlite") != name, "what nobody writes any more is"


def _robot_of(run: Path, opened: OpenJournal, hub: FakeHub) -> Robot:
    """The robot of a run whose owner has ended."""
    _run_dir(run)
    return Robot(opened(run / "journal.sqlite"), hub)


def _run_dir(path: Path, *, lives: bool = False) -> None:
    """A run's directory; its owner has ended, or is this process."""
    path.mkdir()
    if lives:
        own(path)
    else:
        (path / OWNER_FILE).write_text(RunOwner(directory=path.name).model_dump_json())


def _written_name(path: Path) -> str:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return str(db.execute("SELECT journal_id FROM identity").fetchone()[0])


@contextlib.asynccontextmanager
async def _older(robot: Robot, process: Callable[[], str] = lambda: "h/1") -> AsyncIterator[asyncio.Task[None]]:
    older = OlderJournalShipper(robot.link, robot.shipper, robot.journal.path, "r1", process)
    task = asyncio.get_running_loop().create_task(older.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
