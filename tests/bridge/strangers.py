"""Strangers at the WebSockets of a bridge."""

from __future__ import annotations

import json

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

_STRANGERS = [
    ("{path}", "127.0.0.1", None, 401, "token-needed"),
    ("{path}?token=wrong", "127.0.0.1", None, 401, "token-needed"),
    ("{path}?token=t0ken", "127.0.0.1", "http://evil.example", 403, "foreign-origin"),
    ("{path}?token=t0ken", "evil.example", None, 403, "foreign-host"),
    ("/robot1{path}?token=t0ken", "127.0.0.1", None, 404, "not-found"),
]


async def check_strangers_are_refused(port: int, path: str) -> None:
    """Check that a bridge whose token is ``t0ken`` refuses, at a WebSocket's path, who has none or another one,
    foreign origins and hosts, and a prefix that a proxy has left."""
    for target, host, origin, status, kind in _STRANGERS:
        url = f"ws://{host}:{port}{target.format(path=path)}"
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, host="127.0.0.1", port=port, origin=origin)  # type: ignore[arg-type]
        response = refused.value.response
        assert response.status_code == status
        assert json.loads(response.body)["type"].endswith(f":{kind}")
