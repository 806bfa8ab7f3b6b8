from __future__ import annotations

import asyncio
import itertools
import json
import random
import tracemalloc
from typing import Protocol

import pytest

from dimos_streams.journal.broadcast import BroadcastLimits, JournalBroadcast
from dimos_streams.journal.broadcast_reader import BroadcastReader
from dimos_streams.journal.coalescing import coalesce
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.tool_stream.event import ToolEvent
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event


class MakeHub(Protocol):
    def __call__(self, *, events: int = 200_000, **limits: int) -> JournalBroadcast: ...


@pytest.fixture
def made(opened: OpenJournal) -> MakeHub:
    def make(*, events: int = 200_000, **limits: int) -> JournalBroadcast:
        return JournalBroadcast(opened(events=events), BroadcastLimits(**limits))

    return make


def put(broadcast: JournalBroadcast, *events: ToolEvent) -> None:
    broadcast.publish(broadcast.journal.append(events))


async def read_up_to(reader: BroadcastReader, offset: int) -> list[EncodedEntry]:
    found: list[EncodedEntry] = []
    while not found or found[-1].offset < offset:
        found += await reader.page()
    return found


@pytest.mark.virtual_time
async def test_readers_get_each_event_once_in_order_from_where_they_ask(made: MakeHub) -> None:
    broadcast = made(ring_events=64)
    put(broadcast, *(event(seq) for seq in range(1, 1001)))
    readers = [broadcast.reader(after=after) for after in (0, 500, 990)]
    now = broadcast.reader()
    put(broadcast, event(1001))
    for reader, after in zip(readers, (0, 500, 990), strict=True):
        found = await read_up_to(reader, 1001)
        assert [entry.offset for entry in found] == list(range(after + 1, 1002))
    assert [entry.offset for entry in await now.page()] == [1001]


def test_offsets_that_no_event_has_cost_nothing_however_many_there_are(made: MakeHub) -> None:
    """A hub passes over a million where its database may have lost some; to drop each would hold up the loop."""
    broadcast, far = made(ring_events=4), 10**12
    put(broadcast, *(event(seq) for seq in range(1, 4)))
    broadcast.publish([EncodedEntry.of(offset, event(offset)) for offset in (far, far + 1)])
    assert broadcast.entries(3, 10) is None
    assert [entry.offset for entry in broadcast.entries(far - 3, 10) or ()] == [far, far + 1]
    assert broadcast.statistics().ring_bytes == sum(entry.size for entry in broadcast.entries(far - 3, 10) or ())


@pytest.mark.virtual_time
async def test_what_the_ring_has_dropped_is_read_elsewhere_to_the_last_event(made: MakeHub) -> None:
    broadcast = made(ring_events=4)
    put(broadcast, *(event(seq) for seq in range(1, 11)))
    for after in range(10):
        reader = broadcast.reader(after=after)
        found = await read_up_to(reader, 10)
        assert [entry.offset for entry in found] == list(range(after + 1, 11))


@pytest.mark.virtual_time
async def test_new_entries_are_handed_over_at_once_only_to_who_waits_for_them(made: MakeHub) -> None:
    broadcast, taken = made(), list[int]()

    def take(page: list[EncodedEntry]) -> bool:
        taken.extend(entry.offset for entry in page)
        return True

    reader = broadcast.reader(take=take)
    put(broadcast, event(1))
    assert taken == [], "what was there before would come behind it"
    assert [entry.offset for entry in await reader.page()] == [1]
    waiting = asyncio.create_task(reader.page())
    await asyncio.sleep(0)
    put(broadcast, event(2))
    assert taken == [2]
    reader.nudge()
    put(broadcast, event(3))
    assert taken == [2], "who waited goes on already"
    assert [entry.offset for entry in await waiting or await reader.page()] == [3]


@pytest.mark.virtual_time
async def test_filters_by_call_and_caller(made: MakeHub) -> None:
    broadcast = made(ring_events=16)
    one = broadcast.reader(after=0, call_id="c1")
    mine = broadcast.reader(after=0, caller="me")
    for seq in range(1, 101):
        put(broadcast, event(seq, call_id=f"c{seq % 3}", caller="me" if seq % 5 == 0 else "you"))
    assert [entry.offset for entry in await read_up_to(one, 100)] == list(range(1, 101, 3))
    assert [entry.offset for entry in await read_up_to(mine, 100)] == list(range(5, 101, 5))


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_who_wants_no_updates_is_not_woken(made: MakeHub) -> None:
    broadcast = made()
    reader = broadcast.reader(caller="me")
    page = asyncio.create_task(reader.page())
    await asyncio.sleep(0)
    for seq in range(1, 20_001):
        put(broadcast, event(seq, caller="you"))
    assert reader.lag == 0
    put(broadcast, event(1, caller="me"))
    assert [entry.offset for entry in await page] == [20_001]


@pytest.mark.virtual_time
async def test_a_trimmed_range_is_a_gap(made: MakeHub) -> None:
    broadcast = made(events=1000, ring_events=16)
    for start in range(0, 5000, 100):
        put(broadcast, *(event(start + index + 1) for index in range(100)))
    first = broadcast.journal.first_offset
    assert first > 1000
    reader = broadcast.reader(after=10)
    page = await reader.page()
    assert [(entry.offset, entry.type) for entry in page] == [(first - 1, "gap")]
    assert page[0].event.data == {"from_offset": 11, "to_offset": first - 1}
    assert broadcast.statistics().gaps == 1
    assert (await reader.page())[0].offset == first
    assert (page[0].event.caller, page[0].event.call_id) == ("", "")
    (filtered, *_) = await broadcast.reader(after=10, caller="agent", call_id="c1").page()
    assert (filtered.type, filtered.event.caller, filtered.event.call_id) == ("gap", "agent", "")


@pytest.mark.virtual_time
async def test_an_offset_of_another_journal_is_a_gap_and_all_that_there_is_follows(made: MakeHub) -> None:
    broadcast = made()
    put(broadcast, event(1, "open"), event(2))
    reader = broadcast.reader(after=500)
    gap = (await reader.page())[0]
    assert (gap.type, gap.offset) == ("gap", 0)
    assert "another journal" in gap.event.text
    assert [entry.offset for entry in await reader.page()] == [1, 2]


@pytest.mark.virtual_time
async def test_closing_the_hub_ends_all_readers(made: MakeHub) -> None:
    broadcast = made()
    pages = [asyncio.create_task(broadcast.reader().page()) for _ in range(50)]
    await asyncio.sleep(0)
    broadcast.close()
    broadcast.close()
    assert await asyncio.gather(*pages) == [[]] * 50
    assert await broadcast.reader(after=0).page() == []
    assert broadcast.statistics().readers == 0


@pytest.mark.virtual_time
async def test_a_reader_that_does_not_catch_up_is_thinned_and_one_that_does_is_not(made: MakeHub) -> None:
    broadcast = made(coalesce_behind=500)
    slow = broadcast.reader()
    put(broadcast, event(1, "open"))
    await slow.page()
    for seq in range(2, 1002):
        put(broadcast, event(seq))
    page = await slow.page()
    assert [entry.offset for entry in page] == [257]
    assert page[0].event.data == {"coalesced": 256}
    assert broadcast.statistics().coalesced == 255
    late = broadcast.reader(after=0)
    assert len(await read_up_to(late, 1001)) == 1001


def test_thinning_keeps_what_is_not_progress_and_the_order() -> None:
    source = random.Random(5)
    for _ in range(200):
        events = []
        seqs = dict.fromkeys("abc", 0)
        for _ in range(source.randrange(1, 60)):
            call_id = source.choice("abc")
            seqs[call_id] += 1
            type = source.choices(["progress", "update"], [5, 1])[0]
            data = {"coalesced": 3} if type == "progress" and source.random() < 0.1 else {}
            events.append(event(seqs[call_id], type, call_id=call_id, data=data))  # type: ignore[arg-type]
        entries = [EncodedEntry.of(offset, each) for offset, each in enumerate(events, 1)]
        coalesced = coalesce(entries)
        assert [e.offset for e in coalesced] == sorted(e.offset for e in coalesced)
        assert [e.offset for e in coalesced if e.type != "progress"] == [
            e.offset for e in entries if e.type != "progress"
        ]
        assert sum(events_in(e) for e in coalesced) == sum(events_in(e) for e in entries)
        for call_id in "abc":
            own = [e for e in coalesced if e.call_id == call_id]
            assert not any(a.type == b.type == "progress" for a, b in itertools.pairwise(own))
            newest = [e.offset for e in entries if e.call_id == call_id]
            assert [e.offset for e in own][-1:] == newest[-1:]


def events_in(entry: EncodedEntry) -> int:
    count = entry.event.data.get("coalesced", 1)
    assert isinstance(count, int)
    return count


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_what_json_becomes_in_memory_is_kept_of_little(made: MakeHub) -> None:
    broadcast = made(ring_bytes=1024 * 1024)
    texts = [json.dumps({"deep": [{}] * 10_000, "number": number}) for number in range(50)]
    tracemalloc.start()
    for seq, text in enumerate(texts, 1):
        put(broadcast, event(seq, "update", data=json.loads(text)))
    entries = broadcast.entries(30, 20)
    assert entries is not None
    assert [entry.event.data["number"] for entry in entries] == list(range(30, 50))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 6e6, "each is 0.7 MB as objects"


@pytest.mark.virtual_time
async def test_the_ring_counts_what_small_events_take_besides_their_text(made: MakeHub) -> None:
    broadcast = made(ring_bytes=100_000)
    for seq in range(1, 1001):
        put(broadcast, event(seq, "update"))
    statistics = broadcast.statistics()
    assert statistics.ring_bytes <= 100_000
    assert 100 < statistics.ring_events < 200, "each takes more than half a kilobyte"
    broadcast.close()


@pytest.mark.parametrize("size", [10, 40_000])
@pytest.mark.slow
@pytest.mark.virtual_time
async def test_memory_does_not_depend_on_the_readers(size: int, made: MakeHub) -> None:
    broadcast = made(ring_events=500, ring_bytes=1024 * 1024)
    stalled = [broadcast.reader() for _ in range(20)]
    busy = [broadcast.reader() for _ in range(180)]
    got = [0] * len(busy)

    async def follow(index: int) -> None:
        while page := await busy[index].page():
            got[index] += sum(1 for entry in page if entry.type != "gap")

    tasks = [asyncio.create_task(follow(index)) for index in range(len(busy))]
    for seq in range(1, 1001):
        put(broadcast, event(seq, "update", text="x" * size))
        if seq % 5 == 0:
            await asyncio.sleep(0.001)
    await asyncio.sleep(1)
    statistics = broadcast.statistics()
    assert statistics.ring_events <= 500
    assert statistics.ring_bytes <= 1024 * 1024
    assert statistics.lag == 1000
    assert got == [1000] * len(busy), "the stalled ones delay nobody"
    found = await read_up_to(stalled[0], 1000)
    assert [entry.offset for entry in found] == list(range(1, 1001)), "and have lost nothing"
    broadcast.close()
    await asyncio.gather(*tasks)


@pytest.mark.virtual_time
async def test_however_far_the_next_offset_is_ahead_the_ring_has_it_at_once(made: MakeHub) -> None:
    """A hub's sequence has gaps, and one that was cut off from its database may have missed any number."""
    broadcast = made(ring_events=4)
    put(broadcast, *(event(seq) for seq in range(1, 7)))
    ahead = EncodedEntry.of(10**15, event(7))
    broadcast.publish([ahead])
    assert broadcast.entries(ahead.offset - 2, 2) == [ahead]
    assert broadcast.entries(6, 1) is None
    assert broadcast.statistics().ring_bytes == ahead.size
