"""The state of a mission whose agent has died, from its events alone."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.agent.resumption.mission_reader import read_unfinished
from dimos_streams.operator.messages.agent import AgentEvent

pytestmark = pytest.mark.feature("D4")
Told = tuple[str, dict[str, Any]]
GO: Told = ("mission_start", {"text": "go"})
HEARD: Told = ("input", {"text": "go"})


def events(*told: Told) -> list[AgentEvent]:
    return [
        AgentEvent(number=number, utime=number, agent="agent", kind=kind, missions=("m",), data=data)
        for number, (kind, data) in enumerate(told, 1)
    ]


def answer(text: str = "", *, moves: int | None = None, **data: Any) -> Told:
    calls = [] if moves is None else [{"id": "t", "name": "move", "arguments": f'{{"by": {moves}}}'}]
    finish = "tool_calls" if calls else "stop"
    return "answer", {"text": text, "tool_calls": calls, "finish": finish, **data}


def stop(reason: str, **data: Any) -> Told:
    return "stop", {"text": "", "reason": reason, "note": "", **data}


def test_a_stop_that_was_recorded_as_done_is_not_taken_up_again() -> None:
    assert read_unfinished("m", events(("mission_start", {"text": "stop", "is_done": True}))).end_state.ended
    assert not read_unfinished("m", events(GO)).end_state.ended


def test_what_was_asked_for_before_the_operators_newest_input_counts_no_more() -> None:
    found = read_unfinished("m", events(GO, HEARD, answer(moves=1), HEARD, answer(moves=2)))
    assert [batch.calls for batch in found.asked] == [(("move", {"by": 2}),)]


def test_of_very_many_answers_the_newest_count() -> None:
    found = read_unfinished("m", events(GO, HEARD, *[answer(moves=number) for number in range(1100)]))
    assert [len(found.asked), found.asked[-1].calls] == [1000, (("move", {"by": 1099}),)]


@pytest.mark.parametrize(
    ("about", "reason"), [([], "not_understood"), (["m"], "not_understood"), (["n"], "completed")]
)
def test_what_was_not_understood_of_one_mission_is_no_end_of_another_of_the_same_turn(
    about: list[str], reason: str
) -> None:
    assert read_unfinished("m", events(GO, HEARD, stop("not_understood", about=about))).end_state.reason == reason


@pytest.mark.parametrize(("told", "reason"), [([], "no_answer"), ([answer(moves=1)], "completed")])
def test_an_answer_of_nothing_after_a_call_ignores_nobody(told: list[Told], reason: str) -> None:
    assert read_unfinished("m", events(GO, HEARD, *told, answer())).end_state.reason == reason
