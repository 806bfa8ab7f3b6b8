"""Requests as they are received, by the middleware around an app."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope


def reads(scope: Scope) -> bool:
    """Return whether a request only reads, or is for a WebSocket."""
    return scope["type"] == "websocket" or scope["method"] in ("GET", "HEAD")


def again(first: Message, receive: Receive) -> Receive:
    """Return a ``receive`` that gives a message again that has been received already."""
    messages = [first]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
