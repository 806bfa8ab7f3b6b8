"""An extension of ASGI by which a response writes a piece of its body at once, where nothing is in the way.

To send a piece, a task has to be woken, which costs more than the piece itself.
"""

from __future__ import annotations

from typing import Protocol

from starlette.types import Scope

EXTENSION = "dimos_streams.body"
"""The extension's name in a request's scope. Only requests whose response may be sent in chunks have it."""


class Body(Protocol):
    """The body of a response without a length. Nothing here waits or raises."""

    @property
    def is_free(self) -> bool:
        """True if the body has begun, goes on, and the client has left nothing of it waiting."""

    def write(self, piece: bytes) -> None:
        """Write a piece behind all that was sent before; for a body that is free."""


def body_of(scope: Scope) -> Body | None:
    """The body of a request's response, None where the server has no such thing."""
    body: Body | None = scope.get("extensions", {}).get(EXTENSION)
    return body
