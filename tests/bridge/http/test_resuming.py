"""Readers that reconnect as ``EventSource`` does: with the newest id, whether or not an event had it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.serving.events.parameters import after_offset
from tests.bridge.scene import event
from tests.bridge.serving import Served, Stream, served


def reported_offset(stream: Stream) -> int:
    """The id of the next block, which is no event."""
    while True:
        lines = stream.block().split(b"\n")
        assert not lines[0].startswith(b"event")
        for line in lines:
            if line.startswith(b"id: "):
                return int(line[4:])


def publish(bridge: Served, count: int) -> None:
    """Events of a call that no reader has asked for."""

    async def work() -> None:
        broadcast = bridge.scene.bridge.broadcast
        broadcast.publish(broadcast.journal.append([event(seq) for seq in range(1, count + 1)]))

    bridge.run(work())


@pytest.mark.parametrize(
    ("last_event_id", "from_offset", "after"),
    [
        (None, None, None),
        ("", None, None),
        ("", 7, 6),
        (None, 1, 0),
        (None, 0, 0),
        ("9", None, 9),
        ("9", 7, 9),
        ("0", 7, 0),
    ],
)
def test_what_a_reader_has_had_counts_more_than_what_it_once_asked_for(
    last_event_id: str | None, from_offset: int | None, after: int | None
) -> None:
    assert after_offset(last_event_id, from_offset) == after


@pytest.mark.parametrize("query", ["", "?caller=test", "?from=4", "?lastEventId="])
def test_a_reader_that_had_no_event_yet_misses_none_while_it_is_away(query: str) -> None:
    with served() as bridge:
        publish(bridge, 3)
        idle = bridge.stream(query)
        offset = reported_offset(idle)
        idle.close()
        bridge.call("count", label="a", to=2)
        header = f"Last-Event-ID: {offset}\r\n"
        again = (query + str(offset), "") if query.endswith("=") else (query, header)
        events = bridge.stream(*again).events(4)
        assert [offset for offset, _ in events] == [4, 5, 6, 7]


@pytest.mark.parametrize("query", ["?caller=test&from=1", "?caller=test"])
def test_a_reader_keeps_up_with_what_is_not_for_it(query: str) -> None:
    with served(ping_s=0.1, journal_events=1000) as bridge:
        reader = bridge.stream(query)
        assert reported_offset(reader) == 0
        publish(bridge, 1500)
        while (offset := reported_offset(reader)) < 1500:
            pass
        reader.close()
        publish(bridge, 5)
        assert bridge.scene.bridge.broadcast.journal.first_offset > 100, "what it began behind is trimmed"
        bridge.call("count", label="a", to=1)
        again = bridge.stream(query, f"Last-Event-ID: {offset}\r\n").events(3)
        assert [(offset, event["type"]) for offset, event in again] == [
            (1506, "open"), (1507, "update"), (1508, "close")]  # fmt: skip


def test_a_call_that_is_asked_for_again_leads_to_its_first_event(tmp_path: Path) -> None:
    asked = {"skill": "count", "arguments": {"label": "a", "to": 1}, "caller": "test", "idempotency_key": "k"}
    for life in range(2):  # the second one finds the call in the journal
        with served(journal=tmp_path / "journal.sqlite") as bridge:
            if life == 0:
                publish(bridge, 3)
                bridge.post("/calls?wait=close", asked)
            bridge.call("count", label="b", to=1)
            again = bridge.post("/calls?wait=close", asked)
            assert again.headers["Link"] == '</tool_streams?from=4>; rel="events"'
            events = bridge.stream(f"?from=4&call={again.json()['call_id']}").events(3)
            assert [(offset, event["type"]) for offset, event in events] == [(4, "open"), (5, "update"), (6, "close")]


def test_a_ping_has_an_id_only_if_that_is_new() -> None:
    with served(ping_s=0.1) as bridge:
        reader = bridge.stream("?caller=test")
        assert [reader.block(), reader.block()] == [b"retry: 500\nid: 0", b": ping"]
        publish(bridge, 2)
        while (block := reader.block()) == b": ping":
            pass
        assert block == b": ping\nid: 2"
        assert reader.block() == b": ping"
