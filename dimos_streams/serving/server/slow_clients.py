"""The treatment of clients that take nothing of what is sent to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams.serving.server.timing import SEND_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class SlowClients:
    """A bound on how long a client may take nothing, and the way to end its connection then."""

    send_timeout_s: float = SEND_TIMEOUT_S
    abort: Callable[[object], None] | None = None
    """Ends the connection of a client's address at once, without waiting for it to take what was sent; None where
    requests come from within the process, over no connection."""

    def timeout(self) -> asyncio.Timeout:
        """A block in which something is sent; it raises ``TimeoutError`` if the client does not take it in time."""
        return asyncio.timeout(self.send_timeout_s)

    def cut_off(self, scope: Mapping[str, Any]) -> None:
        """End the connection of a request at once."""
        if self.abort is not None:
            self.abort(scope.get("client"))
