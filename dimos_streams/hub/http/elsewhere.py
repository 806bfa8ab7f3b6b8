"""Paths that a bridge has and a hub has not: what to ask instead."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from fastapi import FastAPI

from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problems import ProblemError

_INSTEAD: Mapping[str, str] = {
    "/modules": "each robot has its own modules: GET /robots/ROBOT/modules; GET /robots names the robots",
    "/live": "each robot's own bridge shows topics, at its own address; a hub passes on none",
}


def mount_elsewhere(app: FastAPI) -> None:
    """Add refusals that lead on to an app."""
    for path, text in _INSTEAD.items():
        app.get(path, include_in_schema=False)(_refusal(text))


def _refusal(text: str) -> Callable[[], Awaitable[None]]:
    async def refuse() -> None:
        raise ProblemError(problem_kinds.NOT_FOUND, text)

    return refuse
