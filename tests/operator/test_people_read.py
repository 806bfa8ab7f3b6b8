"""How what people write and read is understood: whom they mean, what they have seen, how a call has ended."""

from __future__ import annotations

import pytest

from dimos_streams.common.names import MAX_NAME
from dimos_streams.operator.agents import addressee, outcome_for_people
from dimos_streams.operator.approval_reference import ApprovalReference
from dimos_streams.tool_stream.event import ToolEvent


@pytest.mark.parametrize(
    ("skill", "of_agent", "outcome"),
    [("say", True, "cancelled"), ("say", False, "failed"), ("drive", True, "failed")],
)
def test_only_a_mission_that_an_operator_has_ended_is_shown_as_cancelled(
    skill: str, of_agent: bool, outcome: str
) -> None:
    data = {"outcome": "failed", "result": {"reason": "aborted"}}
    closed = ToolEvent(
        utime=1, call_id="c", seq=2, type="close", module="agent", skill=skill, caller="cli", text="", data=data,
        of_agent=of_agent,
    )  # fmt: skip
    assert outcome_for_people(closed) == outcome


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("robot2: move 0.3", "robot2"),
        ("see here: a wall", ""),
        ("robot2", ""),
        (f"{'x' * MAX_NAME}: go", "x" * MAX_NAME),
        (f"{'x' * MAX_NAME}x: go", ""),
    ],
)
def test_what_stands_before_a_colon_may_be_whom_a_text_is_for(text: str, name: str) -> None:
    assert addressee(text) == name


@pytest.mark.parametrize(
    ("text", "is_whole"), [("agent-1f-2", True), ("a@1", True), ("agent-1f", False), ("a", False)]
)
def test_an_approval_whose_revision_was_seen_is_called_by_its_whole_id(text: str, is_whole: bool) -> None:
    assert ApprovalReference.of(text).is_whole is is_whole
