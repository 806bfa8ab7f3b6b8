"""The answer to a plain request at the path of a WebSocket, as where a proxy has not passed the handshake on."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from dimos_streams.serving.problem_kinds import UPGRADE_NEEDED
from dimos_streams.serving.problems import ProblemError

_WHY = "this is a WebSocket; a proxy in between has to pass on Upgrade, Connection and Host"


def mount_only_socket(app: FastAPI, path: str) -> None:
    """Refuse plain requests at the path of a WebSocket with what is missing in them, whatever their query is."""
    app.add_route(path, _refuse, methods=["GET"], include_in_schema=False)


async def _refuse(request: Request) -> Response:
    raise ProblemError(UPGRADE_NEEDED, _WHY)
