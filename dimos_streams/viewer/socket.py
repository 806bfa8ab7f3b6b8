"""One connection to ``WS /transport``: the recording, its transport whenever it has changed, and requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic_core import to_json
from starlette.websockets import WebSocket

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import end_tasks_silently, first_of
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from dimos_streams.viewer.playback import Playback
from dimos_streams.viewer.playback_lock import PlaybackLock
from dimos_streams.viewer.transport_commands import transport_command

_Send = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Sends a message. Raises ``TimeoutError`` where the client takes nothing."""

_log = LimitedLog(logging.getLogger(__name__))


async def serve(
    socket: WebSocket, lock: PlaybackLock, about: Mapping[str, Any], connection_ends: ConnectionEnds
) -> None:
    """Serve a client, which is accepted, until either side ends the connection. ``about`` is what it is told of the
    recording."""

    async def send(fields: Mapping[str, Any]) -> None:
        async with connection_ends.timeout():
            await socket.send_text(to_json(fields).decode())

    reading = asyncio.create_task(_read(socket, lock, send), name="transport client")
    try:
        with connection_ends.serving(socket), contextlib.suppress(RuntimeError):  # it has left
            await send({"type": "recording", **about})
            await _send_changes(send, lock.playback, reading)
    finally:
        await end_tasks_silently(reading)


def transport_of(playback: Playback) -> dict[str, Any]:
    """The transport as clients are told: where it is, whether it plays, how fast."""
    transport = playback.transport
    utime = transport.at(clock.monotonic())
    return {"type": "transport", "utime": utime, "playing": transport.playing, "speed": transport.speed}


async def _send_changes(send: _Send, playback: Playback, reading: asyncio.Task[None]) -> None:
    """Send the transport whenever it has changed, as long as the client is read."""
    while not reading.done():
        changed = playback.changed
        await send(transport_of(playback))
        await first_of(reading, changed)
    reading.result()


async def _read(socket: WebSocket, lock: PlaybackLock, send: _Send) -> None:
    while (received := await socket.receive())["type"] == "websocket.receive":
        async with lock.turn() as playback:
            problem = _problem_with(received.get("text"), playback)
        if problem:
            await send({"type": "error", "text": problem})


def _problem_with(text: str | None, playback: Playback) -> str:
    """Do what a message asks for; empty if that is done."""
    try:
        command = transport_command(text)
    except ValueError as error:
        return str(error)
    try:
        playback.carry_out(command)
    except Exception as error:  # a log that can't be read any more, for instance
        _log.exception("%s: %s", command, error)
        return f"{command.command} failed: {error!r}"
    return ""
