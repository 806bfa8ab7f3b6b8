"""Ends connections: of clients that take nothing of what is sent to them, and all when the server itself ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.serving.close_codes import CloseCode, going_away
from dimos_streams.serving.server.timing import SEND_TIMEOUT_S

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class ConnectionEnds:
    """A bound on how long a client may take nothing, and the ways in which a server ends connections."""

    send_timeout_s: float = SEND_TIMEOUT_S
    abort: Callable[[object], None] | None = None
    """Ends the connection of a client's address at once, without waiting for it to take what was sent; None where
    requests come from within the process, over no connection."""
    close_code: CloseCode = going_away
    """The code for WebSockets that are closed because the server ends."""

    def timeout(self) -> asyncio.Timeout:
        """A block in which something is sent; it raises ``TimeoutError`` if the client does not take it in time."""
        return asyncio.timeout(self.send_timeout_s)

    @contextlib.contextmanager
    def serving(self, socket: WebSocket) -> Iterator[None]:
        """A block that sends to a WebSocket's client: it ends quietly once the client has left, and one that took
        nothing in time is cut off."""
        try:
            yield
        except TimeoutError:
            _log.warning("client %s of %s reads nothing; it was cut off", socket.client, socket.url.path)
            self.cut_off(socket.scope)
        except WebSocketDisconnect:
            pass  # it has left while we wrote

    async def close(self, socket: WebSocket) -> None:
        """Close a WebSocket because the server ends."""
        with contextlib.suppress(RuntimeError):  # the client has closed it
            await socket.close(self.close_code())

    def cut_off(self, scope: Mapping[str, Any]) -> None:
        """End the connection of a request at once."""
        if self.abort is not None:
            self.abort(scope.get("client"))
