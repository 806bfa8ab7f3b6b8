"""One connection to ``WS /live``."""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing

from starlette.websockets import WebSocket

from dimos_streams.bridge.live.requests import Watch, parse_request
from dimos_streams.bridge.live.topics import LiveTopics
from dimos_streams.bridge.live.viewer import Viewer, error
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import end_tasks
from dimos_streams.serving.server.connection_ends import ConnectionEnds

_REQUESTS = (2000.0, 4000.0)
"""Maximum cost of a client's messages, per second and at once; those of a client that sends more are read later."""
_TOPIC_COSTS, _SEEN_COSTS = 20.0, 1.0
_PAUSE_S = 0.05

_log = LimitedLog(logging.getLogger(__name__))


async def serve(socket: WebSocket, live: LiveTopics, connection_ends: ConnectionEnds) -> None:
    """Send a client, which is accepted, what it watches until either side ends the connection."""
    with closing(live.view(lambda: connection_ends.cut_off(socket.scope))) as viewer:
        reading = asyncio.create_task(_read(socket, viewer), name="live client")
        try:
            with connection_ends.serving(socket):
                await _write(socket, viewer, connection_ends)
        finally:
            await end_tasks(reading)


async def _write(socket: WebSocket, viewer: Viewer, connection_ends: ConnectionEnds) -> None:
    while (message := await viewer.next()) is not None:
        async with connection_ends.timeout():
            if isinstance(message, str):
                await socket.send_text(message)
            else:
                await socket.send_bytes(message)
        # That a connection is gone is known in the loop's next turn, and others have theirs.
        await asyncio.sleep(0)
    await connection_ends.close(socket)


async def _read(socket: WebSocket, viewer: Viewer) -> None:
    """Do what a client asks for, to its end."""
    try:
        await _take_requests(socket, viewer)
    except Exception as error:  # a bus that refuses a subscription, for instance
        _log.exception("viewer %s was let go: %s", socket.client, error)
    finally:
        viewer.close()


async def _take_requests(socket: WebSocket, viewer: Viewer) -> None:
    allowance = Allowance(*_REQUESTS)
    while (received := await socket.receive())["type"] == "websocket.receive":
        try:
            request = parse_request(received.get("text"))
        except ValueError as problem:
            viewer.say(error(str(problem)))
            await _pay(allowance, _TOPIC_COSTS)
            continue
        if isinstance(request, Watch):
            viewer.watch(request.watch)
            await _pay(allowance, _TOPIC_COSTS * (1 + len(request.watch)))
        else:
            viewer.see(request.seen)
            await _pay(allowance, _SEEN_COSTS)


async def _pay(allowance: Allowance, cost: float) -> None:
    """Wait until a client may say more."""
    while not allowance.take(cost):  # noqa: ASYNC110
        await asyncio.sleep(_PAUSE_S)
