"""The end of a connection by its other side, as the system has heard it: what came before may not have been read
yet."""

from __future__ import annotations

import asyncio
import select


def has_hung_up(writer: asyncio.StreamWriter) -> bool:
    """Return whether the other side has ended a connection, or its sending side, or this one has."""
    if writer.transport.is_closing():
        return True
    look = select.poll()
    look.register(writer.get_extra_info("socket").fileno(), select.POLLRDHUP)
    return bool(look.poll(0))
