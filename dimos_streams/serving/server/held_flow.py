"""Flow control of connections that take turns at being parsed."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl


class HeldFlow(FlowControl):
    """Flow control that does not read on while the connection waits for its turn."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._reads = transport
        self.held = False

    def hold(self) -> None:
        """Read nothing until ``let_go``."""
        self.held = True
        self._reads.pause_reading()

    def let_go(self) -> None:
        """Read on, unless there is another reason not to."""
        self.held = False
        if not self.read_paused:
            self._reads.resume_reading()

    def resume_reading(self) -> None:
        if self.held:
            self.read_paused = False
        else:
            super().resume_reading()
