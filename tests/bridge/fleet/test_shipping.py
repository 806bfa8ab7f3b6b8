"""A robot ships its journal: each event once and in order, from where the hub says, or a gap in its place."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.fleet import older_journals
from dimos_streams.bridge.fleet.attempts import REFUSED_WAIT_S
from dimos_streams.bridge.fleet.hub_requests import HubRefusalError, HubUnreachableError
from dimos_streams.bridge.fleet.older_journals import ROBOT_NOTE, OlderJournal, OlderJournals
from dimos_streams.bridge.fleet.outflow import CurrentJournal, next_batch
from dimos_streams.bridge.fleet.shipper import Shipper
from dimos_streams.bridge.fleet.troubles import Troubles
from dimos_streams.common.process.run_owner import OWNER_FILE, RunOwner, own
from dimos_streams.errors import UserError
from dimos_streams.fleet.batches import ShippedGap
from dimos_streams.fleet.protocol import FLEET_ENTRY, FOREIGN_ROBOT, MAX_BATCH_BYTES, MAX_ENTRIES
from dimos_streams.journal.broadcast import BroadcastLimits, JournalBroadcast
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Query, Read
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.journals import OpenJournal
from tests.bridge.parts import event

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


class Robot:
    """A journal and its shipper."""

    def __init__(self, journal: Journal, hub: FakeHub, ring: int = 64) -> None:
        self.journal = journal
        self.hub = JournalBroadcast(journal, BroadcastLimits(ring_events=ring))
        self.troubles = Troubles(logging.getLogger("hub"), "http://hub")
        self.shipper = Shipper(CurrentJournal(self.hub), hub, self.troubles, rng=random.Random(1), age_s=0.5)

    @property
    def name(self) -> str:
        return self.journal.identity.journal_id

    def happen(self, *seqs: int, size: int = 0) -> None:
        self.hub.publish(self.journal.append([event(seq, text=f"{seq}" + "x" * size) for seq in seqs]))

    @contextlib.asynccontextmanager
    async def shipping(self) -> AsyncIterator[None]:
        task = asyncio.get_running_loop().create_task(self.shipper.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def shipped(self, timeout_s: float = 600.0) -> None:
        async with asyncio.timeout(timeout_s):
            while self.shipper.state().behind or self.shipper.state().acknowledged is None:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


def whole(first: int, last: int) -> list[tuple[int, str]]:
    return [(seq, f"{seq}") for seq in range(first, last + 1)]


async def test_each_event_is_shipped_once_in_order_whatever_is_cut(tmp_path: Path, opened: OpenJournal) -> None:
    hub, chance = FakeHub(delay_s=0.02), random.Random(7)

    def cut() -> None:
        if chance.random() < 0.3:
            raise HubUnreachableError("cut")

    hub.before = hub.after = cut  # what is cut behind the hub's back was stored and not acknowledged
    seq = 0
    for _ in range(3):
        robot = Robot(opened(tmp_path / "journal.sqlite"), hub)
        async with robot.shipping():
            for _ in range(10):
                robot.happen(*range(seq + 1, seq + 51))
                seq += 50
                await asyncio.sleep(chance.uniform(0.0, 1.0))
        robot.hub.close()
        robot.journal.close()
    robot = Robot(opened(tmp_path / "journal.sqlite"), hub)
    async with robot.shipping():
        await robot.shipped()
    assert list(hub.journals) == [robot.name], "it is one journal, however often it was opened"
    assert hub.stored(robot.name) == whole(1, 1500)
    starts = [batch.entries[0].offset for batch in hub.batches]
    assert starts == sorted(starts)


async def test_what_was_trimmed_before_the_hub_had_it_is_a_gap(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(events=1000), hub)
    robot.happen(*range(1, 101))
    async with robot.shipping():
        await robot.shipped()
        hub.before = _down
        for first in range(101, 5001, 100):
            robot.happen(*range(first, first + 100))
            await asyncio.sleep(1)
        first = robot.journal.first_offset
        assert first > 101
        assert robot.shipper.state().behind == 4900
        hub.before = _up
        await robot.shipped()
    gaps = [entry for batch in hub.batches for entry in batch.entries if isinstance(entry, ShippedGap)]
    assert len(gaps) == 1, "what was read before it was trimmed is not lost"
    assert gaps[0].to_offset == first - 1
    assert hub.stored(robot.name)[: gaps[0].offset - 1] == whole(1, gaps[0].offset - 1)
    assert hub.stored(robot.name)[-1001 + 1 :] == whole(5000 - 1000 + 1, 5000)
    assert [offset for offset, _ in hub.stored(robot.name)] == list(range(1, 5001))


async def test_the_hub_decides_where_it_goes_on(opened: OpenJournal) -> None:
    """A hub that was put back from a copy gets once more what it has lost."""
    hub = FakeHub()
    robot = Robot(opened(), hub)
    robot.happen(*range(1, 301))
    async with robot.shipping():
        await robot.shipped()
        kept = hub.journals[robot.name]
        for offset in range(101, 301):
            del kept[offset]
        robot.happen(301)
        await asyncio.sleep(2)
        await robot.shipped()
    assert hub.stored(robot.name) == whole(1, 301)


async def test_a_hub_that_was_put_back_gets_what_it_lost_of_a_robot_with_nothing_new(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    robot.happen(*range(1, 301))
    async with robot.shipping():
        await robot.shipped()
        for offset in range(101, 301):
            del hub.journals[robot.name][offset]
        hub.attempts = 0
        await asyncio.sleep(62)
        assert hub.stored(robot.name) == whole(1, 300)
        await asyncio.sleep(600)
        assert hub.attempts <= 14, "a robot with nothing new is no load"


async def test_a_hub_that_was_put_back_from_before_a_run_gets_all_of_it(opened: OpenJournal) -> None:
    """A hub takes the first batch of a journal wherever that begins, and nothing before it later."""
    hub = FakeHub()
    robot = Robot(opened(), hub)
    robot.happen(*range(1, 301))
    async with robot.shipping():
        await robot.shipped()
        await asyncio.sleep(10)
        hub.journals.clear()
        robot.happen(301)
        await asyncio.sleep(2)
        await robot.shipped()
    assert hub.stored(robot.name) == whole(1, 301)


async def test_a_hub_that_was_put_back_gets_what_it_lost_of_earlier_runs(tmp_path: Path, opened: OpenJournal) -> None:
    hub = FakeHub()
    _run_dir(tmp_path / "1-old")
    old = Robot(opened(tmp_path / "1-old" / "journal.sqlite"), hub)
    old.journal.note(ROBOT_NOTE, "r1")
    old.happen(*range(1, 11))
    old.journal.close()
    _run_dir(tmp_path / "2-now")
    robot = Robot(opened(tmp_path / "2-now" / "journal.sqlite"), hub)
    robot.happen(1)
    async with robot.shipping(), _older(robot, hub):
        await asyncio.sleep(5)
        assert hub.stored(old.name) == whole(1, 10)
        hub.journals.clear()
        await asyncio.sleep(190)
    assert (hub.stored(robot.name), hub.stored(old.name)) == (whole(1, 1), whole(1, 10))


async def test_a_journal_that_lost_its_end_goes_on_under_a_name_of_its_own(
    tmp_path: Path, opened: OpenJournal
) -> None:
    """As after a power cut: what the hub has of the lost end stays, what came instead of it is beside it."""
    hub, path = FakeHub(), tmp_path / "journal.sqlite"
    robot = Robot(opened(path), hub)
    robot.happen(*range(1, 101))

    async def at_once(copy: Callable[[], None]) -> None:
        copy()

    await robot.journal.checkpoint(at_once)
    copy = path.read_bytes()
    robot.happen(*range(101, 151))
    async with robot.shipping():
        await robot.shipped()
    robot.hub.close()
    robot.journal.close()
    _put_back(path, copy)
    robot = Robot(opened(path), hub)
    # More than was lost comes before the hub is asked: its position lies within what is new.
    robot.happen(*range(1001, 1081))
    async with robot.shipping():
        await robot.shipped()
        assert robot.name != next(iter(hub.journals))
        robot.happen(1081)
        await robot.shipped()
    first, second = hub.journals
    assert hub.stored(first) == whole(1, 150)
    assert second == robot.name
    assert hub.stored(second) == [(offset, f"{offset + 900}") for offset in range(101, 182)]


async def test_other_events_under_a_known_name_are_kept_beside_them(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    robot.happen(*range(1, 11))
    hub.journals[robot.name] = {offset: f"{offset}" for offset in range(1, 5)}
    async with robot.shipping():
        await asyncio.sleep(0)
        robot.journal.storage.resumed_at = 10
        hub.journals[robot.name][4] = "4"
        await robot.shipped()
        name = robot.name
        hub.journals[name] = {offset: ("other" if offset == 11 else "") for offset in range(1, 12)}
        robot.shipper._after = 10
        robot.happen(11)
        await asyncio.sleep(3)
        robot.happen(12)
        await robot.shipped()
    assert robot.name != name
    assert hub.stored(robot.name) == [(11, "11"), (12, "12")]


async def test_a_journal_that_goes_on_in_memory_is_another_one(tmp_path: Path, opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(tmp_path / "journal.sqlite"), hub)
    robot.happen(*range(1, 11))
    async with robot.shipping():
        await robot.shipped()
        robot.journal.storage.database.execute("PRAGMA max_page_count=1")
        robot.happen(*range(11, 200), size=1000)
        assert robot.journal.state != "ok"
        begin = robot.journal.identity.begin
        await robot.shipped()
    old, new = hub.journals
    assert hub.stored(old) == whole(1, 10)
    assert [offset for offset, _ in hub.stored(new)] == list(range(begin, 200))


async def test_an_event_that_the_hub_cannot_take_does_not_block_the_others(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    ship = hub.ship

    async def picky(batch: bytes) -> object:
        if b'"text":"7"' in batch:
            raise HubRefusalError("none", FLEET_ENTRY, 7)
        return await ship(batch)

    hub.ship = picky  # type: ignore[assignment, method-assign]
    robot.happen(*range(1, 21))
    async with robot.shipping():
        await robot.shipped(20.0)
    assert hub.stored(robot.name) == [(offset, "gap" if offset == 7 else f"{offset}") for offset in range(1, 21)]


async def test_an_event_for_which_a_hub_refuses_a_whole_batch_is_found_and_blocks_no_others(
    opened: OpenJournal,
) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    ship = hub.ship

    async def picky(batch: bytes) -> object:
        if any(b'"text":"%d"' % seq in batch for seq in (7, 300)):
            await hub._request()
            raise HubRefusalError("it refuses: the body is not JSON", "bad-json")
        return await ship(batch)

    hub.ship = picky  # type: ignore[assignment, method-assign]
    robot.happen(*range(1, 1001))
    async with robot.shipping():
        await robot.shipped(60.0)
    assert hub.attempts < 60
    stored = [(offset, "gap" if offset in (7, 300) else f"{offset}") for offset in range(1, 1001)]
    assert hub.stored(robot.name) == stored


@pytest.mark.parametrize(("takes_gaps", "lost", "attempts"), [(False, 0, 400), (True, 20, 160)])
async def test_a_hub_that_refuses_every_batch_makes_gaps_of_few_events_at_most(
    opened: OpenJournal, takes_gaps: bool, lost: int, attempts: int
) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    ship = hub.ship

    async def refuse(batch: bytes) -> object:
        if takes_gaps and b'"event"' not in batch:
            return await ship(batch)
        await hub._request()
        raise HubRefusalError("it refuses: bad", "bad-request")

    hub.ship = refuse  # type: ignore[assignment, method-assign]
    robot.happen(*range(1, 101))
    async with robot.shipping():
        await asyncio.sleep(1200)
        assert hub.attempts < attempts
        assert robot.troubles.text == "it refuses: bad"
        hub.ship = ship  # type: ignore[method-assign]
        await robot.shipped()
    assert hub.stored(robot.name) == [(seq, "gap" if seq <= lost else f"{seq}") for seq in range(1, 101)]


async def test_a_hub_that_refuses_every_event_does_not_make_gaps_of_them(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    ship, offset = hub.ship, iter(range(1, 10_000))

    async def refuse(batch: bytes) -> object:
        await hub._request()
        raise HubRefusalError("it refuses: no event", FLEET_ENTRY, next(offset))

    hub.ship = refuse  # type: ignore[assignment, method-assign]
    robot.happen(*range(1, 101))
    async with robot.shipping():
        await asyncio.sleep(20)
        assert hub.attempts < 30
        assert robot.troubles.text == "it refuses: no event"
        hub.ship = ship  # type: ignore[method-assign]
        await robot.shipped()
    assert hub.stored(robot.name) == whole(1, 100)


async def test_a_refusal_is_one_line_and_is_tried_again(
    opened: OpenJournal, settled_log: pytest.LogCaptureFixture
) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)

    def refuse() -> None:
        raise HubRefusalError("it refuses: the token is another robot's", FOREIGN_ROBOT)

    hub.before = refuse
    robot.happen(1)
    async with robot.shipping():
        await asyncio.sleep(600)
        assert 600 / REFUSED_WAIT_S / 1.5 <= hub.attempts <= 600 / REFUSED_WAIT_S
        assert robot.troubles.text == "it refuses: the token is another robot's"
        assert len(settled_log.messages) == 1
        assert "another robot's; the run goes on" in settled_log.messages[0]
        hub.before = _up
        await robot.shipped()
        assert robot.troubles.text == ""
        assert settled_log.messages[1:] == ["the hub http://hub is back"]
    assert hub.stored(robot.name) == whole(1, 1)


async def test_a_token_that_is_written_late_is_soon_found(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)

    def missing() -> None:
        raise UserError("the robot's token can't be read")

    hub.before = missing
    robot.happen(1)
    async with robot.shipping():
        await asyncio.sleep(60)
        assert robot.troubles.text == "the robot's token can't be read"
        hub.before = _up
        await robot.shipped(timeout_s=8.0)
    assert hub.stored(robot.name) == whole(1, 1)


async def test_a_hub_that_is_away_is_asked_less_and_less_often(
    opened: OpenJournal, settled_log: pytest.LogCaptureFixture
) -> None:
    hub = FakeHub(before=_down)
    robot = Robot(opened(), hub)
    async with robot.shipping():
        await asyncio.sleep(600)
        assert 75 < hub.attempts < 130
        assert len(settled_log.messages) == 1


async def test_a_hub_that_acknowledges_nothing_is_not_asked_without_end(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    hub.after = hub.journals.clear
    robot.happen(1)
    async with robot.shipping():
        await asyncio.sleep(60)
    assert hub.attempts < 60
    assert "acknowledged offset 0" in robot.troubles.text


async def test_batches_are_bounded_and_their_pace_is_the_hubs(opened: OpenJournal) -> None:
    hub = FakeHub(wait_s=3.0)
    robot = Robot(opened(), hub)
    robot.happen(*range(1, 1001), size=20)
    robot.happen(*range(1001, 1101), size=10_000)
    robot.happen(1101, size=MAX_BATCH_BYTES)
    robot.happen(1102)
    began = clock.monotonic()
    async with robot.shipping():
        await robot.shipped()
        assert clock.monotonic() - began >= 3.0 * (len(hub.batches) - 1)
    assert max(len(batch.entries) for batch in hub.batches) == MAX_ENTRIES
    assert max(len(batch.model_dump_json()) for batch in hub.batches) < MAX_BATCH_BYTES
    stored = dict(hub.stored(robot.name))
    assert len(stored) == 1102
    assert [offset for offset, text in stored.items() if text == "gap"] == [1101]


async def test_a_batch_has_what_came_within_the_time(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    async with robot.shipping():
        for seq in range(1, 101):
            robot.happen(seq)
            await asyncio.sleep(0.02)
        await robot.shipped()
    assert len(hub.batches) <= 6


async def test_a_bridge_that_ends_ships_what_is_left(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    robot.happen(*range(1, 1201))
    await robot.shipper.flush()
    assert hub.stored(robot.name) == whole(1, 1200)
    hub.before = _down
    robot.happen(1201)
    await robot.shipper.flush()
    assert robot.shipper.state().behind == 1


async def test_offsets_that_are_gone_altogether_are_a_gap(opened: OpenJournal) -> None:
    class Emptied(CurrentJournal):
        async def read(self, after: int) -> Read:
            return Read([], 100, 101)

    robot = Robot(opened(), FakeHub())
    robot.happen(*range(1, 101))
    batch = await next_batch(Emptied(robot.hub), 20)
    assert batch is not None
    assert (batch.upto, batch.events) == (100, 0)
    assert b'"entries":[{"offset":21,"to_offset":100,' in batch.body


async def test_a_journal_has_nothing_behind_its_end(opened: OpenJournal) -> None:
    robot = Robot(opened(), FakeHub())
    assert await next_batch(CurrentJournal(robot.hub), 0) is None
    assert robot.shipper.state().behind == 0


def _put_back(path: Path, copy: bytes) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(copy)


def _down() -> None:
    raise HubUnreachableError("it can't be reached: Connection refused")


def _up() -> None:
    pass


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
    async with robot.shipping(), _older(robot, hub):
        await asyncio.sleep(60)
        assert list(hub.journals) == [names[1], names[3], names[0]], "what is new comes first"
        assert all(hub.stored(name) == whole(1, 1000) for name in (names[0], names[1], names[3]))
    hub.attempts = 0
    async with _older(robot, hub):
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
        async with _older(robot, hub, lambda: process[0]):
            await asyncio.sleep(60)
            assert hub.stored(old) == whole(1, 10)
            if when == "while it runs":
                del hub.journals[old]
                process[0] = "h/2"
                await asyncio.sleep(130)
        if when == "before the run":
            del hub.journals[old]
            process[0] = "h/2"
        async with _older(robot, hub, lambda: process[0]):
            await asyncio.sleep(60)
            assert hub.stored(old) == whole(1, 10)
        process[0] = "h/3"
        shipped = (tmp_path / "1-old" / "journal.sqlite").stat().st_mtime_ns
        async with _older(robot, hub, lambda: process[0]):
            await asyncio.sleep(10)
            hub.attempts = 0
            await asyncio.sleep(50)
            assert hub.attempts <= 1, "each process is asked once, and the run's own journal each minute"
        assert (tmp_path / "1-old" / "journal.sqlite").stat().st_mtime_ns == shipped, "it was not shipped again"


async def test_calls_that_a_killed_run_has_left_open_are_closed_as_lost_once(
    tmp_path: Path, opened: OpenJournal
) -> None:
    hub = FakeHub()
    _run_dir(tmp_path / "1-old")
    old = Robot(opened(tmp_path / "1-old" / "journal.sqlite"), hub)
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
    _run_dir(tmp_path / "2-now")
    robot = Robot(opened(tmp_path / "2-now" / "journal.sqlite"), hub)
    async with robot.shipping(), _older(robot, hub):
        await asyncio.sleep(60)
        assert len(hub.stored(name)) == 4, "whoever has the file open may be about to write more"
        old.journal.close()
        await asyncio.sleep(130)
        assert len(hub.stored(name)) == 5
    async with _older(robot, hub):
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
    _run_dir(tmp_path / "1-old")
    old = Robot(opened(tmp_path / "1-old" / "journal.sqlite"), hub)
    old.journal.note(ROBOT_NOTE, "r1")
    old.happen(*range(1, 11))
    old.journal.close()
    _run_dir(tmp_path / "2-now")
    robot = Robot(opened(tmp_path / "2-now" / "journal.sqlite"), hub)
    find, errors = older_journals._of_earlier_runs, [OSError(errno.EIO, "Input/output error")]

    def fails_once(current: Path) -> Iterator[Path]:
        if errors:
            raise errors.pop()
        return find(current)

    async def lose(journal: OlderJournal) -> None:
        shutil.rmtree(journal.path.parent)

    monkeypatch.setattr(older_journals, "_of_earlier_runs", fails_once)
    async with robot.shipping(), _older(robot, hub) as task:
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
    _run_dir(tmp_path / "2-now")
    robot = Robot(opened(tmp_path / "2-now" / "journal.sqlite"), hub)
    robot.happen(1)
    async with robot.shipping(), _older(robot, hub):
        await asyncio.sleep(130)
    assert list(hub.journals) == [robot.name]


async def test_a_journal_that_somebody_writes_is_not_renamed(tmp_path: Path, opened: OpenJournal) -> None:
    hub = FakeHub()
    _run_dir(tmp_path / "1-old")
    old = Robot(opened(tmp_path / "1-old" / "journal.sqlite"), hub)
    old.journal.note(ROBOT_NOTE, "r1")
    old.happen(*range(1, 11))
    name = old.name
    hub.journals[name] = dict.fromkeys(range(1, 12), "lost")  # so that it has to be another one
    _run_dir(tmp_path / "2-now")
    robot = Robot(opened(tmp_path / "2-now" / "journal.sqlite"), hub)
    async with robot.shipping(), _older(robot, hub):
        await asyncio.sleep(60)
        assert _written_name(tmp_path / "1-old" / "journal.sqlite") == name
        old.journal.close()
        await asyncio.sleep(130)
    assert _written_name(tmp_path / "1-old" / "journal.sqlite") != name, "what nobody writes any more is"


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
async def _older(
    robot: Robot, hub: FakeHub, process: Callable[[], str] = lambda: "h/1"
) -> AsyncIterator[asyncio.Task[None]]:
    older = OlderJournals(
        robot.journal.path,
        "r1",
        hub,
        robot.troubles,
        rng=random.Random(1),
        up_to_date=lambda: robot.shipper.state().is_whole,
        losses=lambda: robot.shipper.losses,
        process=process,
    )
    task = asyncio.get_running_loop().create_task(older.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_batch_is_of_one_journal_though_another_one_takes_its_place_while_it_is_read() -> None:
    journal = Journal()
    journal.open()
    journal.append([event(number) for number in range(1, 4)])

    class Renamed(CurrentJournal):
        """A journal that is found to be another one while a page of it is read."""

        async def read(self, after: int) -> Read:
            found = await super().read(after)
            journal.rename(1)
            return found

    broadcast = JournalBroadcast(journal)
    assert await next_batch(CurrentJournal(broadcast), 0) is not None
    assert await next_batch(Renamed(broadcast), 0) is None
    journal.close()
