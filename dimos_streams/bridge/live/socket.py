"""One connection to ``WS /live``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from dimos_streams.bridge.live.requests import Watch, parse_request
from dimos_streams.bridge.live.topics import LiveTopics
from dimos_streams.bridge.live.viewer import Viewer, error
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import end_tasks

_REQUESTS = (2000.0, 4000.0)
"""Maximum cost of a client's messages, per second and at once; those of a client that sends more are read later."""
_TOPIC_COSTS, _SEEN_COSTS = 20.0, 1.0
_PAUSE_S = 0.05

_log = LimitedLog(logging.getLogger(__name__))


async def serve(
    socket: WebSocket, live: LiveTopics, *, send_timeout_s: float, abort: Callable[[object], None]
) -> None:
    """Send a client, which is accepted, what it watches until either side ends the connection.

    A client that takes nothing for ``send_timeout_s`` is cut off. ``abort`` ends a client's connection at once.
    """
    client = socket.scope.get("client")
    with live.view(lambda: abort(client)) as viewer:
        reading = asyncio.create_task(_read(socket, viewer), name="live client")
        try:
            await _write(socket, viewer, send_timeout_s)
        except TimeoutError:
            _log.warning("viewer %s reads nothing; it was cut off", client)
            abort(client)
        except WebSocketDisconnect:
            pass  # it has left while we wrote
        finally:
            await end_tasks(reading)


async def _write(socket: WebSocket, viewer: Viewer, send_timeout_s: float) -> None:
    while (message := await viewer.next()) is not None:
        async with asyncio.timeout(send_timeout_s):
            if isinstance(message, str):
                await socket.send_text(message)
            else:
                await socket.send_bytes(message)
        # That a connection is gone is known in the loop's next turn, and others have theirs.
        await asyncio.sleep(0)
    with contextlib.suppress(RuntimeError):  # the client has closed it
        await socket.close(1001)


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
            await _paid(allowance, _TOPIC_COSTS)
            continue
        if isinstance(request, Watch):
            viewer.watch(request.watch)
            await _paid(allowance, _TOPIC_COSTS * (1 + len(request.watch)))
        else:
            viewer.see(request.seen)
            await _paid(allowance, _SEEN_COSTS)


async def _paid(allowance: Allowance, cost: float) -> None:
    """Wait until a client may say more."""
    while not allowance.take(cost):  # noqa: ASYNC110
        await asyncio.sleep(_PAUSE_S)
