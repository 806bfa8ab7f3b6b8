"""Pages of events for readers that look back: each leads to the one before it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dimos_streams.common.json.reading import parse_json
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.query import QueryBack
from dimos_streams.serving.events.pages import NEWEST, page_back
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import event

pytestmark = pytest.mark.virtual_time


async def pages(broadcast: JournalBroadcast, query: QueryBack, limit: int) -> list[list[dict[str, Any]]]:
    """All pages, the newest first, found by their links."""
    found: list[list[dict[str, Any]]] = []
    while True:
        response = await page_back(broadcast, query, limit)
        found.append(parse_json(bytes(response.body)))
        link = response.headers.get("Link")
        if link is None:
            return found
        asked = dict(parse_qsl(urlsplit(link.partition(">")[0].removeprefix("<")).query))
        assert int(asked.pop("limit")) == limit
        query = QueryBack(
            int(asked.pop("before")),
            caller=asked.pop("caller", None),
            call_id=asked.pop("call", None),
            robot=asked.pop("robot", None),
            progress=asked.pop("progress", "") == "true",
        )
        assert asked == {}


async def test_each_event_is_on_one_page(opened: OpenJournal) -> None:
    broadcast = JournalBroadcast(opened())
    broadcast.publish(broadcast.journal.append([event(seq, "update") for seq in range(1, 8)]))
    found = await pages(broadcast, QueryBack(NEWEST), 3)
    assert [[entry["offset"] for entry in page] for page in found] == [[5, 6, 7], [2, 3, 4], [1]]


async def test_the_link_asks_for_the_same(opened: OpenJournal) -> None:
    broadcast = JournalBroadcast(opened())
    given = [event(seq, "progress", call_id=f"c{seq % 2}", caller="me") for seq in range(1, 9)]
    broadcast.publish(broadcast.journal.append(given))
    found = await pages(broadcast, QueryBack(NEWEST, "me", "c1", progress=True), 2)
    assert [[entry["offset"] for entry in page] for page in found] == [[5, 7], [1, 3]]
    response = await page_back(broadcast, QueryBack(NEWEST, robot="r 1", progress=True), 2)
    assert "?robot=r+1&" in response.headers["Link"]


async def test_what_is_not_kept_any_more_is_a_gap_on_the_oldest_page(opened: OpenJournal) -> None:
    journal = opened(events=3)
    broadcast = JournalBroadcast(journal)
    broadcast.publish(journal.append([event(seq, "update") for seq in range(1, 5)]))
    journal.trim()
    (page,) = await pages(broadcast, QueryBack(NEWEST), 10)
    assert [(entry["offset"], entry["event"]["type"]) for entry in page] == [
        (1, "gap"), (2, "update"), (3, "update"), (4, "update"),
    ]  # fmt: skip
