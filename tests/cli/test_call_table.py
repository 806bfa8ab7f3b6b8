"""The table of calls: its cells belong to its headers, and calls of skills stand below those that asked for them."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.cli.bridge_client.calls.call_list import call_table, in_families
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallPhase, CallView


def view(call_id: str, state: CallPhase = "open", outcome: Outcome | None = None) -> CallView:
    return CallView(
        call_id=call_id,
        skill="go",
        module="legs",
        caller="me",
        parent="",
        arguments={},
        state=state,
        outcome=outcome,
        text="nearly\nthere",
    )


def cells_of(call: CallView) -> dict[str, str]:
    headers, (row,) = call_table([call])
    return dict(zip(headers, row, strict=True))


@pytest.mark.feature("K1")
def test_calls_are_listed_below_their_parents() -> None:
    ids = ["a", "b", "b~1", "a~1", "c~4", "b~1~1", "a~2", "a.1"]
    _, rows = call_table(in_families(map(view, ids)))
    assert [(row[0], row[1]) for row in rows] == [
        ("a", "go"),
        ("a~1", "  go"),
        ("a~2", "  go"),
        ("b", "go"),
        ("b~1", "  go"),
        ("b~1~1", "    go"),
        ("c~4", "  go"),
        ("a.1", "go"),
    ]


def test_each_cell_stands_below_its_header() -> None:
    cells = cells_of(view("c1"))
    what = {"CALL": "c1", "SKILL": "go", "STATE": "open", "CALLER": "me", "LAST WORD": "nearly there"}
    assert cells == {**what, "BEGAN": "", "TOOK": ""}
    assert cells_of(view("c1", "closed", Outcome.LOST))["STATE"] == "lost"


@pytest.mark.virtual_time
async def test_when_calls_began_and_how_long_they_took() -> None:
    begun = view("c1").model_copy(update={"requested_utime": clock.utime()})
    await asyncio.sleep(90)
    assert (cells_of(begun)["BEGAN"], cells_of(begun)["TOOK"]) == ("90 s ago", "")
    closed = begun.model_copy(update={"closed_utime": begun.requested_utime + 2_345_000})
    await asyncio.sleep(600)
    assert (cells_of(closed)["BEGAN"], cells_of(closed)["TOOK"]) == ("12 min ago", "2.35 s")
    ahead = begun.model_copy(update={"requested_utime": clock.utime() + 5_000_000})
    assert cells_of(ahead)["BEGAN"] == "0 s ago", "by another machine's clock"


def test_a_hub_s_calls_are_listed_with_their_robots() -> None:
    assert cells_of(view("c1").model_copy(update={"robot": "r1"}))["ROBOT"] == "r1"
