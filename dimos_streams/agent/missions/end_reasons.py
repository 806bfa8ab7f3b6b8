"""The reasons for which missions end: which are a success, and what the others mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dimos_streams.agent.models.protocol import CALL_FAILED, NOT_UNDERSTOOD

STOPPED_BY_OPERATOR, CALL_CANCELLED = "stopped", "call_cancelled"
_NO_CALLS, _NO_ANSWER = "no_calls", "no_answer"
_COMPLETED = frozenset({"completed", "answered", "goal_reached"})
"""The reasons of success: the model asked for nothing more; the input was the answer to a question; the robot is
where it was to go."""
_MEANINGS = {
    "": "no turn of it has ended",
    CALL_FAILED: "a call that it led to has failed",
    NOT_UNDERSTOOD: "the input is no command that the model knows",
    "aborted": "an operator has aborted it",
    "cancelled": "the operator has withdrawn the input",
    "closed": "the agent was stopped, with its run or to be restarted",
    "consecutive_errors": "too many calls in a row have failed",
    "content_filter": "the model's server has held its answer back",
    "cut": "the model's answer broke off",
    "deadline": "it took longer than it may",
    "error": "something went wrong",
    "interrupted": "the operator had input that could not wait",
    "length": "the model's answer was cut off, for it was longer than it may be",
    "max_actions": "it took more calls than it may",
    "max_cost": "it cost more than it may",
    "max_iterations": "it took more answers than it may",
    "max_tokens": "it took more of the model's tokens than it may",
    _NO_CALLS: "the model ended its answer as if it had asked for calls, but none came",
    _NO_ANSWER: "the model has answered with nothing, neither a text nor a call",
    "repetition": "the same was done over and over",
    "too_long": "the model's answer was longer than it may be, and was cut off",
    STOPPED_BY_OPERATOR: "an operator has stopped the robot",
    CALL_CANCELLED: "its last call was cancelled",
    "script_ended": "the script has no turn left: it takes one when something was said, after each answer to a call,"
    " and when a call goes on or ends",
}
_AGENTS_OWN = (_COMPLETED | _MEANINGS.keys()) - {
    *("completed", CALL_FAILED, NOT_UNDERSTOOD, "content_filter", "error", "length", "script_ended")
}
"""The reasons above that no model may give."""


def completed(reason: str) -> bool:
    """Return whether a mission that ended for a reason has done what it was to do."""
    return reason in _COMPLETED


def of_model(finish: str) -> str:
    """The reason that a model gives for the end of its answer, told apart from those that the agent gives: a server
    may name it as it likes, and does not say what an operator has done, or that a mission has reached its goal."""
    return f"model:{finish}" if finish in _AGENTS_OWN else finish


def of_last_answer(finish: str, *, ignored: bool) -> tuple[str, str]:
    """The reason for which a turn ends with an answer that asks for no call, and a note on it, which may be empty.

    ``ignored`` says that somebody's input was heard, and that the turn has neither a text nor a call in answer to it.
    """
    if finish == "tool_calls":
        return _NO_CALLS, _MEANINGS[_NO_CALLS]
    if ignored and finish == "stop":
        return _NO_ANSWER, _MEANINGS[_NO_ANSWER]
    return ("completed" if finish == "stop" else finish), ""


def stopped(reason: str, why: str) -> str:
    """The text that stands for an answer that did not come, so that the model does nothing more about the order."""
    meaning = why if reason == "aborted" and why else _MEANINGS.get(reason, reason.replace("_", " "))
    return f"[I have stopped: {meaning}. This order is over.]"


def is_about(about: Collection[str], id: str) -> bool:
    """Return whether a reason is about the mission of that id: it names it, or none."""
    return not about or id in about


def explained(reason: str, why: str, unfinished: Iterable[str] = ()) -> str:
    """The reason of a mission that did not complete, in a sentence for people, with its calls that may still run."""
    why = why or _MEANINGS.get(reason, "")
    sentence = f"the mission did not complete: {reason or 'unknown'}{f' ({why})' if why else ''}"
    return "; ".join((sentence, *unfinished))
