"""The watch for a robot on the bus onto which a log is played."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from dimos_streams.bus import Bus, Subscription
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.holding import GATE
from dimos_streams.tool_stream.protocol.channels import STATUS

_MOST_PLAYED = 10_000
"""The number of played heartbeats that are remembered, which is far more than those that are under way on a bus."""


class RobotWatch:
    """Listens for a velocity gate that speaks for itself: those of the log are heard as well, as they are played."""

    def __init__(self, bus: Bus, on_robot: Callable[[], object]) -> None:
        """``on_robot`` is called as soon as a gate is heard."""
        self._bus = bus
        self._on_robot = on_robot
        self._played = NewestEntries[bytes, None](_MOST_PLAYED)
        """Digests of the heartbeats of gates that were played: a living one says when it was sent, so it is none."""
        self._subscription: Subscription | None = None
        self.gate = ""
        """The name of the gate that was heard; empty if none was."""

    def start(self) -> None:
        """Begin to listen. The bus must be open."""
        self._subscription = self._bus.subscribe(STATUS, self._on_status)

    def stop(self) -> None:
        """Stop listening. Stopping twice is fine."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.close()

    def note(self, channel: str, data: bytes) -> None:
        """Note a message that is about to be played."""
        if channel == STATUS and _may_be_of_gate(data):
            self._played[_digest(data)] = None

    def _on_status(self, channel: str, data: bytes) -> None:
        if not _may_be_of_gate(data) or _digest(data) in self._played:
            return
        try:
            status = decode(ModuleStatus, data, channel)
            state = parse_json(status.state_json)
        except (MessageError, ValueError):
            return
        if isinstance(state, dict) and GATE in state:
            self.gate = self.gate or status.module
            self._on_robot()


def _may_be_of_gate(data: bytes) -> bool:
    return GATE.encode() in data


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
