"""Problems of HTTP: the error that a bridge answers with is the one that its client raises."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response

from dimos_streams.agent.operators.said import MissionIncompleteError
from dimos_streams.client.problems import problem_error, problem_name
from dimos_streams.errors import (
    BadRequestError,
    CallInDoubtError,
    CallRejectedError,
    ConflictError,
    KeyUsedError,
    SettingsError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
    UnknownAgentError,
    UnknownCallError,
    UnknownRobotError,
    UnknownSkillError,
)
from dimos_streams.serving import problem_kinds, problems

ERRORS = (
    SkillError("no"),
    UnknownSkillError("folow", ["follow"]),
    UnknownAgentError("no agent is called 'a'"),
    UnknownRobotError("r9", ["r1"]),
    UnknownCallError("c1"),
    SkillArgumentError("turn", {"angle_deg": "too much"}),
    SettingsError({"agent.model": "unknown"}),
    BadRequestError({"body.skill": "it is missing"}),
    CallRejectedError("busy", holder="c1", resource="base"),
    KeyUsedError("the key is that of c1", call_id="c1", skill="turn", state="open"),
    ConflictError("amended meanwhile", result={"revision": 2}),
    SkillUnavailableError("it does not answer"),
)


def answered(error: SkillError) -> dict[str, Any]:
    """The problem that a bridge answers with."""
    app = FastAPI()
    problems.install(app)

    async def response() -> Response:
        answer = app.exception_handlers[SkillError](Request({"type": "http"}), error)
        return await answer if isinstance(answer, Awaitable) else answer

    return content_of(asyncio.run(response()))


def content_of(response: Response) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(bytes(response.body))
    assert response.status_code == content["status"]
    return content


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_client_raises_what_the_bridge_has_raised(error: SkillError) -> None:
    raised = problem_error(answered(error))
    assert type(raised) is type(error)
    assert str(raised) == str(error)
    for name in ("skill", "robot", "known", "call_id", "state", "problems", "holder", "resource", "result"):
        assert getattr(raised, name, None) == getattr(error, name, None)


def test_every_kind_is_that_of_its_error() -> None:
    errors = {kind: problem_error({"type": kind.type, "detail": "why"}) for kind in problem_kinds.KINDS}
    own = {kind: error for kind, error in errors.items() if type(error) is not SkillError}
    assert {type(error) for error in own.values()} == {type(error) for error in ERRORS} - {SkillError}
    for kind, error in errors.items():
        assert str(error) == "why"
        assert problem_kinds.kind_of(error) is (kind if kind in own else problem_kinds.SKILL_ERROR)


def test_an_error_without_a_kind_of_its_own_has_that_of_the_nearest_class() -> None:
    assert problem_name(CallInDoubtError) == problem_name(SkillUnavailableError) == "skill-unavailable"
    assert type(problem_error(answered(CallInDoubtError("perhaps")))) is SkillUnavailableError
    assert type(problem_error(answered(MissionIncompleteError("ended", result={})))) is SkillError
    assert type(problem_error({"detail": "no type"})) is SkillError


def test_what_a_server_says_is_one_line() -> None:
    error = problem_error({"detail": "no\nerror: all is well\u202e \x1b[2J"})
    assert str(error) == r"no\nerror: all is well\u202e \x1b[2J"
