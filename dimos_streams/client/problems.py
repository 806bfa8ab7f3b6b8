"""The errors of skills in ``application/problem+json``: as a bridge puts them into it, and as Python raises them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dimos_streams.common.printable import printable
from dimos_streams.errors import (
    BadRequestError,
    CallRejectedError,
    ConflictError,
    KeyUsedError,
    RobotNeededError,
    SettingsError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
    UnknownAgentError,
    UnknownCallError,
    UnknownRobotError,
    UnknownSkillError,
)


class _ProblemForm(NamedTuple):
    name: str
    """The end of the problem's type."""
    make: Callable[[str, Mapping[str, Any]], SkillError]
    """Makes the error of a problem: of its detail, and of all that it has."""


_FORMS: Final[Mapping[type[SkillError], _ProblemForm]] = {
    UnknownSkillError: _ProblemForm(
        "unknown-skill", lambda detail, problem: UnknownSkillError(_text(problem, "skill"), ())
    ),
    UnknownAgentError: _ProblemForm("unknown-agent", lambda detail, problem: UnknownAgentError(detail)),
    UnknownRobotError: _ProblemForm(
        "unknown-robot", lambda detail, problem: UnknownRobotError(_text(problem, "robot"), _texts(problem, "robots"))
    ),
    RobotNeededError: _ProblemForm("robot-needed", lambda detail, problem: RobotNeededError(detail)),
    UnknownCallError: _ProblemForm(
        "unknown-call", lambda detail, problem: UnknownCallError(_text(problem, "call_id"))
    ),
    SkillArgumentError: _ProblemForm(
        "bad-arguments", lambda detail, problem: SkillArgumentError(_text(problem, "skill"), _errors(problem))
    ),
    BadRequestError: _ProblemForm("bad-request", lambda detail, problem: BadRequestError(_errors(problem))),
    SettingsError: _ProblemForm("bad-settings", lambda detail, problem: SettingsError(_errors(problem))),
    CallRejectedError: _ProblemForm(
        "call-rejected",
        lambda detail, problem: CallRejectedError(
            detail, holder=_text(problem, "holder"), resource=_text(problem, "resource")
        ),
    ),
    KeyUsedError: _ProblemForm(
        "key-used",
        lambda detail, problem: KeyUsedError(
            detail,
            call_id=_text(problem, "call_id"),
            skill=_text(problem, "skill"),
            state=_text(problem, "state"),
        ),
    ),
    ConflictError: _ProblemForm(
        "conflict", lambda detail, problem: ConflictError(detail, result=problem.get("current"))
    ),
    SkillUnavailableError: _ProblemForm("skill-unavailable", lambda detail, problem: SkillUnavailableError(detail)),
    SkillError: _ProblemForm("skill-error", lambda detail, problem: SkillError(detail)),
}
_BY_NAME = {form.name: form for form in _FORMS.values()}


def problem_name(of: type[SkillError]) -> str:
    """The end of the type of an error's problem; a class that has none of its own has that of the nearest above."""
    return next(_FORMS[each].name for each in of.__mro__ if each in _FORMS)


def problem_fields(error: SkillError) -> dict[str, Any]:
    """The fields by which the problem of an error speaks to programs, besides its type."""
    fields: dict[str, Any] = {}
    if isinstance(error, BadRequestError | SkillArgumentError | SettingsError):
        fields["errors"] = error.problems
    if isinstance(error, UnknownSkillError | SkillArgumentError | KeyUsedError):
        fields["skill"] = error.skill
    if isinstance(error, UnknownRobotError):
        fields["robot"], fields["robots"] = error.robot, error.known
    if isinstance(error, UnknownCallError | KeyUsedError):
        fields["call_id"] = error.call_id
    if isinstance(error, KeyUsedError):
        fields["state"] = error.state
    if isinstance(error, CallRejectedError) and error.holder:
        fields["holder"] = error.holder
        if error.resource:
            fields["resource"] = error.resource
    if isinstance(error, ConflictError):
        fields["current"] = error.result
    return fields


def problem_error(problem: Mapping[str, Any]) -> SkillError:
    """The error of a problem's type, with the same text, in one line: a server's line ends would be taken for our
    own."""
    detail = printable(str(problem["detail"]))
    name = str(problem.get("type", "")).rpartition(":")[2]
    error = _BY_NAME.get(name, _FORMS[SkillError]).make(detail, problem)
    error.args = (detail,)
    return error


def _errors(problem: Mapping[str, Any]) -> dict[str, str]:
    errors = problem.get("errors")
    return errors if isinstance(errors, dict) else {}


def _text(problem: Mapping[str, Any], field: str) -> str:
    text = problem.get(field)
    return text if isinstance(text, str) else ""


def _texts(problem: Mapping[str, Any], field: str) -> list[str]:
    texts = problem.get(field)
    return [printable(text) for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
