"""``GET /events``: who looks back gets what was said, page by page, the newest first to be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dimos_streams.serving.events import pages
from tests.bridge.scene import event
from tests.bridge.serving import Served, served
from tests.problems import problem


def looked_back(bridge: Served, query: str = "") -> list[list[dict[str, Any]]]:
    """All pages from the newest on."""
    pages, url = [], f"/events?{query}"
    while url:
        answer = bridge.get(url)
        assert answer.status_code == 200, answer.text
        pages.append(answer.json())
        url = answer.links.get("next", {}).get("url", "")
        assert len(pages) < 100
    return pages


def offsets(pages: list[list[dict[str, Any]]]) -> list[int]:
    return [entry["offset"] for page in reversed(pages) for entry in page]


@pytest.mark.slow
@pytest.mark.feature("E9")
@pytest.mark.parametrize("in_file", [True, False])
def test_pages_back_from_now_have_what_the_stream_had_without_the_progress(tmp_path: Path, in_file: bool) -> None:
    with served(journal=tmp_path / "journal.sqlite" if in_file else None) as bridge:
        for label in "abc":
            bridge.call("count", label=label, to=2)
        publish(bridge, *(event(seq, "progress", call_id="busy") for seq in range(1, 31)))
        streamed = bridge.stream("?from=1").events(42)
        pages = looked_back(bridge, "limit=5")
        assert [len(page) for page in pages] == [5, 5, 2]
        shown = [(entry["offset"], entry["event"]) for page in reversed(pages) for entry in page]
        assert shown == [each for each in streamed if each[1]["type"] != "progress"]
        assert offsets(looked_back(bridge, "limit=20&progress=true")) == list(range(1, 43))
        call_id = streamed[4][1]["call_id"]
        assert offsets(looked_back(bridge, f"call={call_id}&limit=3")) == [5, 6, 7, 8]
        assert offsets(looked_back(bridge, "caller=nobody")) == []
        assert offsets([bridge.get("/events?before=4&limit=2").json()]) == [2, 3]
        assert bridge.get("/events?before=0").json() == []


def test_what_is_not_kept_any_more_is_a_gap_on_the_oldest_page() -> None:
    with served(journal_events=1000) as bridge:
        publish(bridge, *(event(seq, "update") for seq in range(1, 1501)))
        first = bridge.scene.bridge.broadcast.journal.first_offset
        pages = looked_back(bridge, "limit=1000")
        assert first > 100
        gap = pages[-1][0]
        assert (gap["offset"], gap["event"]["type"]) == (first - 1, "gap")
        assert gap["event"]["data"] == {"from_offset": 1, "to_offset": first - 1}
        assert offsets(pages) == list(range(first - 1, 1501))


@pytest.mark.slow
def test_a_page_is_bounded_in_bytes_and_in_what_it_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 10_000)
    with served(journal_events=20_000) as bridge:
        publish(bridge, *(event(seq, "update", text="x" * 4000) for seq in (1, 2, 3, 4)))
        assert [len(page) for page in looked_back(bridge)] == [2, 2]
        publish(bridge, event(5, "update", text="x" * 20_000))
        assert [len(page) for page in looked_back(bridge)] == [1, 2, 2], "one at least"
        publish(bridge, *(event(seq, "progress", call_id="busy") for seq in range(1, 9001)))
        assert [len(page) for page in looked_back(bridge)][:3] == [0, 0, 1], "a search is bounded, too"


def test_what_is_no_page_is_refused() -> None:
    with served() as bridge:
        for query in ("limit=0", "limit=1001", "before=-1", "before=x", "progress=perhaps", "from=1"):
            problem(bridge.get(f"/events?{query}"), 422, "bad-request")
        problem(bridge.get("/events?call=a/b"), 404, "unknown-call")


def publish(bridge: Served, *events: Any) -> None:
    async def work() -> None:
        broadcast = bridge.scene.bridge.broadcast
        broadcast.publish(broadcast.journal.append(events))

    bridge.run(work())
