"""One connection to ``WS /monitor``."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import closing
from typing import Protocol

from starlette.websockets import WebSocket

from dimos_streams.bridge.monitor.lanes import Lanes
from dimos_streams.bridge.monitor.view import message, numbered
from dimos_streams.bridge.monitor.watcher import Watcher
from dimos_streams.common.tasks import OwnedTasks, end_tasks
from dimos_streams.serving.server.connection_ends import ConnectionEnds

QUERY = ("agent",)
"""The query parameters that are read of a client's address."""
MOST_COMMANDS = 64
"""Maximum number of commands of one client that have been read and whose answers it has not taken. A long one counts
as one more for each ``_LONG`` characters, up to ``_MOST_FOR_ONE``: parsed, it takes dozens of times its size, and
what is kept makes each collection of garbage longer, in which nobody else has a turn."""
_LONG = 4096
_MOST_FOR_ONE = 16


class Watched(Protocol):
    """A source of watchers: a ``Monitor``, or a recording."""

    def watch(self, agent: str | None = None) -> Watcher:
        """A watcher of everything or of one agent; it is closed when the client is gone."""


class Commanded(Protocol):
    """The part that carries commands out: ``Commands``."""

    async def carry_out(self, text: str, lanes: Lanes) -> bytes:
        """Carry out a command in its turn, and return the answer, which has no ``seq`` yet. Any text gets one."""


async def serve(
    socket: WebSocket,
    monitor: Watched,
    commands: Commanded,
    connection_ends: ConnectionEnds,
) -> None:
    """Send a client, which is accepted, what happens and take its commands until either side ends the connection.

    Commands that were read are carried out, also if the client leaves meanwhile, but not if it did so while this
    process stood still.
    """
    running = OwnedTasks()
    try:
        await _converse(socket, monitor, commands, running, connection_ends)
        if running:
            await asyncio.wait(running)
    finally:
        for command in running:
            command.cancel()


async def _converse(
    socket: WebSocket,
    monitor: Watched,
    commands: Commanded,
    running: OwnedTasks,
    connection_ends: ConnectionEnds,
) -> None:
    with closing(monitor.watch(socket.query_params.get("agent") or None)) as watcher:
        reading = asyncio.create_task(_read(socket, watcher, commands, running), name="monitor client")
        try:
            with connection_ends.serving(socket):
                await _write(socket, watcher, connection_ends)
        finally:
            await end_tasks(reading)


async def _write(socket: WebSocket, watcher: Watcher, connection_ends: ConnectionEnds) -> None:
    for seq in itertools.count(1):
        update = await watcher.next()
        if update is None:
            break
        async with connection_ends.timeout():
            await socket.send_text(numbered(seq, update))
        # That a connection is gone is known in the loop's next turn, and others have theirs.
        await asyncio.sleep(0)
    await connection_ends.close(socket)


async def _read(socket: WebSocket, watcher: Watcher, commands: Commanded, running: OwnedTasks) -> None:
    """Read commands. Those of a lane begin in the order in which they come, and do not wait for each other's ends."""
    lanes, room = Lanes(), asyncio.Semaphore(MOST_COMMANDS)
    try:
        await room.acquire()
        while (received := await socket.receive())["type"] == "websocket.receive":
            text = received.get("text")
            places = min(1 + len(text or "") // _LONG, _MOST_FOR_ONE)
            running.spawn(_answer(text, watcher, commands, lanes, room, places), name="monitor command")
            # Before the next one is read: this task may end while it waits here, and what was read would be lost.
            for _ in range(places):
                await room.acquire()
        watcher.close()
    finally:
        lanes.leave()


async def _answer(
    text: str | None, watcher: Watcher, commands: Commanded, lanes: Lanes, room: asyncio.Semaphore, places: int
) -> None:
    if text is None:
        why = "send commands as text, not as bytes"
        answer = message("error", id=None, problem="bad-json", text=why, errors={}, call_id="")
    else:
        answer = await commands.carry_out(text, lanes)

    def taken() -> None:
        for _ in range(places):
            room.release()

    watcher.reply(answer, taken=taken)
