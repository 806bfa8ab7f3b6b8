"""An order counts as done only where all of it has come true."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.operator.agents import public_name
from dimos_streams.operator.order_results import has_come_true, is_done
from dimos_streams.tool_stream.event import ToolEvent

UNDONE, FAILED = {"how": "undone"}, {"how": "failed"}
HELD, MOVING = {"held": ["gate"]}, {"held": ["gate"], "not_held": [{"gate": "b", "problem": "deaf", "text": "deaf"}]}


@pytest.mark.parametrize(
    ("order", "result", "is_true"),
    [
        ("undo", {"asked": 2, "undone": [UNDONE, UNDONE]}, True),
        ("undo", {"asked": 2, "undone": [UNDONE, FAILED]}, False),
        ("undo", "undone", False),
        ("pause", HELD, True),
        ("pause", MOVING, False),
        ("pause", {}, False),
        ("abort", "aborted", False),
        ("resume", "it goes on", True),
        ("resume", {"text": "it goes on", "unkept": "the disk is full"}, False),
        ("pause", {**HELD, "unkept": "the disk is full"}, False),
    ],
)
def test_what_an_agent_has_carried_out(order: str, result: Any, is_true: bool) -> None:
    assert has_come_true(order, result) is is_true


@pytest.mark.parametrize(
    ("skill", "data", "done"),
    [
        (public_name("agent", "undo"), {"outcome": "completed", "result": {"asked": 1, "undone": [UNDONE]}}, True),
        (public_name("agent", "undo"), {"outcome": "completed", "result": {"asked": 1, "undone": [FAILED]}}, False),
        (public_name("agent", "undo"), {"outcome": "cancelled", "result": {"asked": 1, "undone": [UNDONE]}}, False),
        (public_name("agent", "undo"), {"outcome": "completed", "result": "no agent's report"}, True),
        (public_name("agent", "look"), {"outcome": "failed", "result": None}, False),
        (public_name("agent", "look"), {"outcome": "completed", "result": {"asked": 1, "undone": [FAILED]}}, True),
    ],
)
def test_a_call_that_has_ended(skill: str, data: dict[str, Any], done: bool) -> None:
    closed = ToolEvent(
        utime=1, call_id="c1", seq=2, type="close", module="agent", skill=skill, caller="cli", text="", data=data
    )
    assert is_done(closed) is done
