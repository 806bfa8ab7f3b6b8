"""The errors that a bridge puts into ``application/problem+json``, as Python raises them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.errors import (
    CallRejectedError,
    ConflictError,
    SettingsError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
    UnknownAgentError,
    UnknownRobotError,
    UnknownSkillError,
)


def problem_error(problem: Mapping[str, Any]) -> SkillError:
    """The error of a problem's type, with the same text."""
    detail = str(problem["detail"])
    errors, holder = problem.get("errors"), problem.get("holder")
    error: SkillError
    match str(problem.get("type", "")).rpartition(":")[2]:
        case "unknown-skill":
            error = UnknownSkillError("", ())
        case "unknown-agent":
            error = UnknownAgentError(detail)
        case "unknown-robot":
            error = UnknownRobotError("", ())
        case "bad-arguments":
            error = SkillArgumentError("", errors if isinstance(errors, dict) else {})
        case "bad-settings":
            error = SettingsError(errors if isinstance(errors, dict) else {})
        case "call-rejected":
            error = CallRejectedError(detail, holder=holder if isinstance(holder, str) else "")
        case "conflict":
            error = ConflictError(detail, result=problem.get("current"))
        case "skill-unavailable":
            error = SkillUnavailableError(detail)
        case _:
            error = SkillError(detail)
    error.args = (detail,)
    return error
