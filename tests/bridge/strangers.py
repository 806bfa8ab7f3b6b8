"""Strangers at the WebSockets of a bridge."""

from __future__ import annotations

import json

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

_STRANGERS = [
    ("", "127.0.0.1", None, 401, "token-needed"),
    ("?token=wrong", "127.0.0.1", None, 401, "token-needed"),
    ("?token=t0ken", "127.0.0.1", "http://evil.example", 403, "foreign-origin"),
    ("?token=t0ken", "evil.example", None, 403, "foreign-host"),
]


async def check_strangers_are_refused(port: int, path: str) -> None:
    """Check that a bridge whose token is ``t0ken`` refuses, at a WebSocket's path, who has none or another one, and
    foreign origins and hosts."""
    for query, host, origin, status, kind in _STRANGERS:
        url = f"ws://{host}:{port}{path}{query}"
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, host="127.0.0.1", port=port, origin=origin)  # type: ignore[arg-type]
        response = refused.value.response
        assert response.status_code == status
        assert json.loads(response.body)["type"].endswith(f":{kind}")
