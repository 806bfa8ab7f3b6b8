from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import random
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.call_pages import DEFAULT_LIMIT, PAGE_BYTES, CallQuery, Cursor
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.journal import Journal
from dimos_streams.tool_stream.gateway import CallPhase
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS
from tests.bridge.scene import event
from tests.bridge.serving import Served, served
from tests.problems import problem


def call(number: int, *, size: int = 0, state: CallPhase = "closed") -> CallState:
    """One of a row of calls; two at a time were requested in the same microsecond."""
    return CallState(
        call_id=f"c{number:04d}",
        skill="count",
        module="worker",
        caller="test",
        arguments={"label": "x" * size},
        requested_utime=1000 + number // 2,
        state=state,
        last_seq=2,
    )


def remember(bridge: Served, *calls: CallState) -> None:
    async def add() -> None:
        for each in calls:
            bridge.broker.ledger.calls.add(each)

    bridge.run(add())


def ids(views: list[dict[str, Any]]) -> list[str]:
    return [view["call_id"] for view in views]


def test_the_newest_calls_come_first_and_the_older_ones_by_the_link() -> None:
    with served() as bridge:
        remember(bridge, *(call(number) for number in range(250)))
        response = bridge.get("/calls")
        pages = [ids(response.json())]
        assert len(pages[0]) == DEFAULT_LIMIT
        while "next" in response.links:
            remember(bridge, call(1_000 + len(pages)))
            response = bridge.get(response.links["next"]["url"])
            pages.insert(0, ids(response.json()))
        assert [each for page in pages for each in page] == [f"c{number:04d}" for number in range(250)]
        assert [len(page) for page in pages] == [50, 100, 100]


def test_the_newest_of_a_state() -> None:
    with served() as bridge:
        remember(bridge, *(call(number, state="closed" if number % 3 else "open") for number in range(30)))
        assert ids(bridge.get("/calls?state=closed&limit=3").json()) == ["c0026", "c0028", "c0029"]
        response = bridge.get("/calls?state=open&limit=6")
        assert ids(response.json()) == ["c0012", "c0015", "c0018", "c0021", "c0024", "c0027"]
        assert ids(bridge.get(response.links["next"]["url"]).json()) == ["c0000", "c0003", "c0006", "c0009"]


@pytest.mark.feature("A3")
def test_a_page_is_bounded_in_bytes_and_a_gateway_reads_them_all() -> None:
    with served() as bridge:
        remember(bridge, *(call(number, size=MAX_ARGUMENTS - 100) for number in range(40)))
        response = bridge.get("/calls?limit=1000")
        assert 1 < len(response.json()) < 40
        assert len(response.content) <= PAGE_BYTES + 100
        gateway = HttpGateway(bridge.url, rng=random.Random(0))
        views = asyncio.run(gateway.calls())
        assert [view.call_id for view in views] == [f"c{number:04d}" for number in range(40)]
        assert asyncio.run(gateway.calls(open_only=True)) == []
        gateway.close()


@pytest.mark.virtual_time
async def test_one_call_that_is_larger_than_a_page_is_a_page() -> None:
    calls = [call(number, size=PAGE_BYTES) for number in range(3)]
    turn = asyncio.Lock()
    page = await CallQuery().page(calls, turn)
    assert page.before == Cursor(1001, "c0002")
    assert (await CallQuery(before=page.before).page(calls, turn)).before == Cursor(1000, "c0001")


@pytest.mark.virtual_time
async def test_the_newest_call_comes_last_also_where_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(Journal()) as journal:
        journal.open()
        for number, utime in enumerate((3_000, 1_000, 2_000)):
            monkeypatch.setattr(clock, "utime", lambda utime=utime: utime)
            ledger = Ledger(JournalBroadcast(journal))
            ledger.restore()  # a bridge begins anew before each call
            if number % 2:
                ledger.begin(dataclasses.replace(call(number), requested_utime=utime))
            ledger.enter([event(1, "open", call_id=f"c{number:04d}")])
        assert [each.call_id for each in ledger.calls] == ["c0000", "c0001", "c0002"]
        page = await CallQuery(limit=2).page(ledger.calls, asyncio.Lock())
        older = await CallQuery(before=page.before).page(ledger.calls, asyncio.Lock())
    assert [ids(json.loads(each.body)) for each in (older, page)] == [["c0000"], ["c0001", "c0002"]]


@pytest.mark.virtual_time
async def test_the_loop_has_its_turns_while_pages_are_made() -> None:
    turns, together, turn = 0, 5, asyncio.Lock()

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    calls = [call(number) for number in range(1000)]
    pages = await asyncio.gather(*(CallQuery(limit=1000).page(calls, turn) for _ in range(together)))
    counting.cancel()
    made = sum(len(json.loads(page.body)) for page in pages)
    assert turns > made // 50 > 10 * together, "each thousand calls would hold it up for 30 ms"


def test_what_is_no_cursor_or_limit_is_refused() -> None:
    with served() as bridge:
        bad = problem(bridge.get("/calls?before=yesterday"), 422, "bad-request")
        assert "before: this is not where a page ends" in bad["detail"]
        assert "(given: 'yesterday')" in bad["detail"]
        for query in ("limit=0", "limit=1001", "state=shut"):
            problem(bridge.get(f"/calls?{query}"), 422, "bad-request")


def test_cursors_survive_the_way_there_and_back() -> None:
    for cursor in (Cursor(0, "a"), Cursor(-5, "a-b"), Cursor(2**63, "~:.-")):
        assert Cursor.parse(str(cursor)) == cursor
    for text in ("", "5", "5-", "x-a", "5-" + "a" * 201):
        with pytest.raises(ValueError, match="is not where a page ends"):
            Cursor.parse(text)
