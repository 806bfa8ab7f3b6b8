"""Who asks much of a recording's clock leaves the loop to others in between."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from starlette.websockets import WebSocket

from dimos_streams.viewer import socket as served
from dimos_streams.viewer.stage import Stage


class _Talkative:
    """A client whose hundred wishes have all come already, and a stage that counts them."""

    def __init__(self) -> None:
        self.wishes = 0
        self._waiting = 100

    async def receive(self) -> dict[str, Any]:
        self._waiting -= 1
        return {"type": "websocket.receive" if self._waiting >= 0 else "gone", "text": '{"command": "step"}'}

    def wish(self, wish: object) -> None:
        self.wishes += 1


def test_others_have_turns_between_wishes() -> None:
    async def scenario() -> None:
        client = _Talkative()
        reading = asyncio.create_task(served._read(cast(WebSocket, client), cast(Stage, client)))
        for _ in range(3):
            await asyncio.sleep(0)
        assert 0 < client.wishes <= 3
        await reading
        assert client.wishes == 100

    asyncio.run(scenario())
