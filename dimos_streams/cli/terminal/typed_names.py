"""The faults that a bridge finds in a request, by the names under which they were typed."""

from __future__ import annotations

from collections.abc import Mapping

from dimos_streams.common.invalid import NO_SUCH_NAME, in_a_line

_TYPED: Mapping[str, str] = {
    "body.skill": "SKILL",
    "body.agent": "--agent",
    "body.robot": "--robot",
    "body.caller": "--caller",
    "body.arguments": "--arg",
    "body.idempotency_key": "--idempotency-key",
    "body.lease_wait_s": "--lease-wait",
    "body.on_duplicate": "--on-duplicate",
    "body.on_loss": "--on-loss",
    "body.reason": "--reason",
}


def problems_as_typed(problems: Mapping[str, str]) -> str:
    """Return the problems of a request in a line, each by the option or argument that it comes from."""
    return in_a_line({_TYPED.get(path, path): _text(path, problem) for path, problem in problems.items()})


def _text(path: str, problem: str) -> str:
    if path == "body.robot" and problem.startswith(NO_SUCH_NAME):
        return "it is for a fleet's hub, and this is the bridge of one run: leave it out"
    return problem
