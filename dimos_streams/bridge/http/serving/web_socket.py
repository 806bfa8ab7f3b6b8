"""uvicorn's WebSocket protocol, on a server that stops."""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class StoppableWebSocket(WebSocketsSansIOProtocol):
    """Can be told at any time that its server stops.

    uvicorn says goodbye to a client then, also to one that has done so itself and has only to take what was sent
    before. The second goodbye raises ``InvalidState``, and no other connection of the server is ended.
    """

    def shutdown(self) -> None:
        """The server stops: end the connection, unless it is ending already."""
        if not self.transport.is_closing():
            super().shutdown()
