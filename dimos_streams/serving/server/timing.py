"""The times after which a server pings a client, and gives it up, unless settings say otherwise."""

from __future__ import annotations

from typing import Final

PING_S: Final = 10.0
"""Time, in seconds, after which an event stream without events sends a comment, and a WebSocket is pinged."""
SEND_TIMEOUT_S: Final = 20.0
"""Time, in seconds, after which a client that takes nothing is cut off."""
