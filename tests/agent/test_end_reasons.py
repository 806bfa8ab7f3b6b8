"""Why missions end: what the model is told of it."""

from __future__ import annotations

import pytest

from dimos_streams.agent.missions.end_reasons import completed, explained, of_last_answer, of_model, stopped
from dimos_streams.agent.policies.runaway import MAX_ACTIONS, REPETITION


@pytest.mark.parametrize(
    ("reason", "meaning"),
    [
        (MAX_ACTIONS, "it took more calls than it may"),
        (REPETITION, "the same was done over and over"),
        ("max_cost", "it cost more than it may"),
        ("max_tokens", "it took more of the model's tokens than it may"),
        ("max_iterations", "it took more answers than it may"),
        ("deadline", "it took longer than it may"),
    ],
)
def test_each_bound_has_a_sentence(reason: str, meaning: str) -> None:
    assert stopped(reason, "") == f"[I have stopped: {meaning}. This order is over.]"


@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_an_answer_that_breaks_its_word_or_says_nothing(finish: str) -> None:
    reason, note = of_last_answer(finish, ignored=True)
    assert reason != "completed"
    assert stopped(reason, "") == f"[I have stopped: {note}. This order is over.]"


@pytest.mark.parametrize("finish", ["aborted", "answered", "cancelled", "deadline", "goal_reached", "stopped"])
def test_a_model_s_server_does_not_say_what_others_have_done(finish: str) -> None:
    reason = of_model(finish)
    assert not completed(reason)
    assert explained(reason, "") == f"the mission did not complete: model:{finish}"


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "length", "content_filter", "call_failed", "its own"])
def test_other_reasons_of_a_model_stand_as_they_are(finish: str) -> None:
    assert of_model(finish) == finish


def test_a_script_that_is_too_short_says_what_takes_a_turn() -> None:
    """As it does in the failure of a test whose author has counted the answers only."""
    told = explained(of_model("script_ended"), "")
    assert "no turn left" in told
    assert "when a call goes on or ends" in told
