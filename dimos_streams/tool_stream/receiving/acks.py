"""Acknowledgements, by which a receiver says what was delivered of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dimos_streams.tool_stream.receiving.received_calls import ReceivedCalls
from dimos_streams.tool_stream.receiving.requests import Requests

ACK_EVERY = 128
"""Number of events of a call that are acknowledged at once: an eighth of what a publisher has under way."""
ACK_DELAY_S = 0.0075
"""Time, in seconds, that an acknowledgement waits for more: half-way between two events that are 5 or 10 ms apart, so
that it does not meet the next one."""


class Acks:
    """The acknowledgements of the calls of which something was delivered, sent together."""

    def __init__(self, calls: ReceivedCalls, requests: Requests, undelivered: Callable[[], set[str]]) -> None:
        """``undelivered`` returns the calls of which something is in hand: they are acknowledged later."""
        self._calls = calls
        self._requests = requests
        self._undelivered = undelivered
        self._due: set[str] = set()
        self._next: asyncio.Handle | None = None
        self._is_urgent = False

    def soon(self, call_id: str, *, at_once: bool) -> None:
        """Acknowledge a call in the loop's next turn, after those who wait for the event, or in ``ACK_DELAY_S``."""
        self._due.add(call_id)
        if at_once and not self._is_urgent:
            self.stop()
            self._is_urgent = True
            self._next = asyncio.get_running_loop().call_soon(self.send)
        elif self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._wait)

    def _wait(self) -> None:
        self._next = asyncio.get_running_loop().call_later(ACK_DELAY_S, self.send)

    def send(self) -> None:
        """Acknowledge what is due."""
        self.stop()
        undelivered = self._undelivered()
        for call_id in sorted(self._due - undelivered):
            call = self._calls.get(call_id)
            if call is not None:
                self._requests.ack(call)
        self._due &= undelivered

    def stop(self) -> None:
        """Send nothing by itself. Stopping twice is fine."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._is_urgent = False
