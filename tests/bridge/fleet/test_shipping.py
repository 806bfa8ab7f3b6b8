"""A robot ships its journal: each event once and in order, from where the hub says, or a gap in its place."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bridge.fleet.attempts import REFUSED_WAIT_S
from dimos_streams.bridge.fleet.hub_requests import HubRefusalError, HubUnreachableError
from dimos_streams.bridge.fleet.shipping.outflow import CurrentJournal, next_batch
from dimos_streams.errors import UserError
from dimos_streams.fleet.batches import Batch, Position, ShippedEvent, ShippedGap
from dimos_streams.fleet.protocol import (
    FLEET_ENTRY,
    FLEET_POSITION,
    FOREIGN_ROBOT,
    MAX_BATCH_BYTES,
    MAX_ENTRIES,
)
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.journal import Journal
from dimos_streams.journal.query import Read
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.fleet.robot import Robot, whole
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


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
    assert robot.shipper.losses == 1, "earlier runs are asked for, too"


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


@pytest.mark.parametrize("pause_s", [10.0, 1.0])
async def test_a_hub_that_was_put_back_from_before_a_run_gets_all_of_it(opened: OpenJournal, pause_s: float) -> None:
    """A hub takes the first batch of a journal wherever that begins, and nothing before it later. That it is another
    one is seen by the end of its stream of commands."""
    hub = FakeHub()
    robot = Robot(opened(), hub)
    robot.happen(*range(1, 301))
    async with robot.shipping():
        await robot.shipped()
        await asyncio.sleep(pause_s)
        hub.journals.clear()
        robot.turns += pause_s < 5.0
        robot.happen(301)
        await asyncio.sleep(2)
        await robot.shipped()
    assert hub.stored(robot.name) == whole(1, 301)


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
        robot.journal.resumed_at = 10
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
        robot.journal.database.execute("PRAGMA max_page_count=1")
        robot.happen(*range(11, 200), size=1000)
        assert robot.journal.state != "ok"
        begin = robot.journal.identity.begin
        await robot.shipped()
    old, new = hub.journals
    assert hub.stored(old) == whole(1, 10)
    assert [offset for offset, _ in hub.stored(new)] == list(range(begin, 200))


async def test_events_that_are_refused_now_and_then_are_no_trouble_however_many_they_are(opened: OpenJournal) -> None:
    hub = FakeHub()
    robot = Robot(opened(), hub)
    ship = hub.ship

    async def picky(batch: bytes) -> object:
        refused = next((entry.offset for entry in Batch.model_validate_json(batch).entries if is_odd(entry)), None)
        if refused is not None:
            raise HubRefusalError("none", FLEET_ENTRY, refused)
        return await ship(batch)

    def is_odd(entry: ShippedEvent | ShippedGap) -> bool:
        return isinstance(entry, ShippedEvent) and entry.offset % 2 == 1

    hub.ship = picky  # type: ignore[assignment, method-assign]
    async with robot.shipping():
        for offset in range(1, 61):
            robot.happen(offset)
            await robot.shipped(20.0)
    assert hub.stored(robot.name) == [(offset, "gap" if offset % 2 else f"{offset}") for offset in range(1, 61)]


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


async def test_offsets_that_can_not_be_read_now_are_no_gap(opened: OpenJournal) -> None:
    class Unread(CurrentJournal):
        async def read(self, after: int) -> Read:
            return Read([], after, after + 1)

    robot = Robot(opened(), FakeHub())
    robot.happen(*range(1, 101))
    assert await next_batch(Unread(robot.hub), 20) is None


@pytest.mark.parametrize("size", [50, 200, 1000])
async def test_a_batch_is_as_large_as_it_may_be_and_no_larger(opened: OpenJournal, size: int) -> None:
    """One that is too large the hub refuses."""
    robot = Robot(opened(), FakeHub(), ring=1000)
    robot.happen(*range(1, 600), size=size)
    batch = await next_batch(CurrentJournal(robot.hub), 0)
    assert batch is not None
    assert batch.full
    assert len(batch.body) <= MAX_BATCH_BYTES
    assert batch.entries == MAX_ENTRIES or len(batch.body) > MAX_BATCH_BYTES - 3000


@pytest.mark.parametrize("below", [500, 1000, 1500, 2500])
async def test_an_event_that_fills_a_batch_holds_nothing_up(opened: OpenJournal, below: int) -> None:
    robot = Robot(opened(), FakeHub())
    robot.happen(1, size=MAX_BATCH_BYTES - below)
    batch = await next_batch(CurrentJournal(robot.hub), 0)
    assert batch is not None
    assert batch.upto == 1


async def test_a_hub_that_refuses_the_place_that_it_names_is_asked_now_and_then(opened: OpenJournal) -> None:
    hub = FakeHub(delay_s=0.01)
    robot = Robot(opened(), hub)
    robot.happen(*range(1, 11))

    async def refuse(batch: bytes) -> Position:
        await hub._request()
        raise HubRefusalError("not there", FLEET_POSITION, 0)

    hub.ship = refuse  # type: ignore[method-assign]
    async with robot.shipping():
        await asyncio.sleep(60.0)
    assert hub.attempts < 20


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
