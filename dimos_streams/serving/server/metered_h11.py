"""h11's side of a connection, which parses no more at a time than it is allowed to."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import h11

MAX_PIECES = 4096
"""Maximum number of pieces (chunks, or reads) in which the body of one request may come."""


class MeteredConnection(h11.Connection):
    """Gives ``allowance`` events, then claims to need data; refuses bodies in too many pieces, and those of which
    two headers say where they end: a proxy may believe the other one."""

    allowance = 0
    needs_data = True
    is_too_long = False
    """True if what should have been the head of a request, or of a chunk, was longer than it may be."""
    _pieces = 0

    @property
    def too_many_pieces(self) -> bool:
        """True if the body of the present request has come in more pieces than it may."""
        return self._pieces > MAX_PIECES

    def next_event(self) -> Any:
        if self.allowance == 0:
            return h11.NEED_DATA
        event = self._next_event()
        self.needs_data = event is h11.NEED_DATA
        if isinstance(event, h11.Request):
            self._pieces = 0
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
        elif isinstance(event, h11.Data):
            self._pieces += 1
        if isinstance(event, h11.Event):
            self.allowance -= 1
        if self.too_many_pieces:
            raise h11.RemoteProtocolError(f"a body in more than {MAX_PIECES} pieces", 413)
        return event

    def _next_event(self) -> Any:
        try:
            return super().next_event()
        except h11.RemoteProtocolError as error:
            error.__traceback__ = None  # it has a frame in it that has the error
            self.is_too_long = error.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise
