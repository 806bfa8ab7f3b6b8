"""One connection to ``WS /transport``: the recording, its transport whenever it is another one, and wishes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.websockets import WebSocket, WebSocketDisconnect

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.viewer.stage import Stage
from dimos_streams.viewer.wishes import parse_wish

_SEND_TIMEOUT_S = 20.0

_log = LimitedLog(logging.getLogger(__name__))


async def serve(socket: WebSocket, stage: Stage, about: Mapping[str, Any]) -> None:
    """Serve a client until either side ends the connection. ``about`` is what it is told of the recording."""
    await socket.accept()
    reading = asyncio.create_task(_read(socket, stage), name="transport client")
    try:
        await _send(socket, {"type": "recording", **about})
        while not reading.done():
            changed = stage.changed
            await _send(socket, transport_of(stage))
            waiting = asyncio.create_task(changed.wait())
            try:
                await asyncio.wait([waiting, reading], return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
    except (WebSocketDisconnect, TimeoutError, RuntimeError):
        pass  # it has left, or reads nothing
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await socket.close(1001)


def transport_of(stage: Stage) -> dict[str, Any]:
    """The transport as clients are told: where it is, whether it plays, how fast."""
    transport = stage.transport
    utime = transport.at(clock.monotonic())
    return {"type": "transport", "utime": utime, "playing": transport.playing, "speed": transport.speed}


async def _read(socket: WebSocket, stage: Stage) -> None:
    while (received := await socket.receive())["type"] == "websocket.receive":
        # Going to a moment takes a while, and what waits already is received at once: others have their turn between.
        await asyncio.sleep(0)
        try:
            wish = parse_wish(received.get("text"))
        except ValueError as error:
            await _send(socket, {"type": "error", "text": str(error)})
            continue
        try:
            stage.wish(wish)
        except Exception as error:  # a log that can't be read any more, for instance
            _log.exception("%s: %s", wish, error)
            await _send(socket, {"type": "error", "text": f"{wish.command} failed: {error!r}"})


async def _send(socket: WebSocket, fields: Mapping[str, Any]) -> None:
    async with asyncio.timeout(_SEND_TIMEOUT_S):
        await socket.send_text(to_json(fields).decode())
