"""The codes with which WebSockets are closed by a server that ends, by the registry of RFC 6455."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

GOING_AWAY: Final = 1001
"""The server ends, and nobody comes back."""
SERVICE_RESTART: Final = 1012
"""The server ends, and another one takes its place at once."""
CloseCode: TypeAlias = Callable[[], int]
"""Returns the code with which to close a connection now."""


def going_away() -> int:
    """The code of a server of which nobody knows that it comes back."""
    return GOING_AWAY
