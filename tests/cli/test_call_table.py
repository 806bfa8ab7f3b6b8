"""The table of calls: its cells belong to its headers, and calls of skills stand below those that asked for them."""

from __future__ import annotations

import pytest

from dimos_streams.cli.bridge_client.skill_calls import CALL_COLUMNS, call_cells, in_families
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


@pytest.mark.feature("K1")
def test_calls_are_listed_below_their_parents() -> None:
    ids = ["a", "b", "b~1", "a~1", "c~4", "b~1~1", "a~2", "a.1"]
    rows = [*map(call_cells, in_families(map(view, ids)))]
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
    cells = dict(zip(CALL_COLUMNS, call_cells(view("c1")), strict=True))
    assert cells == {"CALL": "c1", "SKILL": "go", "STATE": "open", "CALLER": "me", "LAST WORD": "nearly there"}
    closed = dict(zip(CALL_COLUMNS, call_cells(view("c1", "closed", Outcome.LOST)), strict=True))
    assert closed["STATE"] == "lost"
