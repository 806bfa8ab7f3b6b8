"""Whether somebody at the other end of a connection is there still, by what the system has heard: what they sent
before may not have been read yet."""

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
