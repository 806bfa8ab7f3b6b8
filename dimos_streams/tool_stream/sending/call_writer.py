"""The sending end of one call's tool stream: numbered, kept until it is safe, slowed down to what receivers take."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import SkillError, StreamClosedError
from dimos_streams.tool_stream.event import EventType, Outcome
from dimos_streams.tool_stream.family import parent_of
from dimos_streams.tool_stream.protocol.channels import PARENT
from dimos_streams.tool_stream.sending.history import EventHistory
from dimos_streams.tool_stream.sending.receivers import RECEIVER_GONE_S, Receivers
from dimos_streams.tool_stream.wire.packing import EventPacker

RECEIVER_ANSWERS_S = 0.3
"""The time, in seconds, that a call that has filled its window waits, once, for a receiver not heard of lately."""
PARENT_GONE_S = 5.0
"""The time, in seconds, after which a call does not wait any more for the host of its parent, which acknowledged
nothing though each heartbeat names the call."""
_TURN = 32
"""Number of events of one call after which the rest of the loop has its turn."""
_NACK_SLICE = 64
"""Maximum number of events sent again for one request; the receiver asks for the rest."""


@dataclass(frozen=True, slots=True)
class PublisherLimits:
    """Bounds of a publisher's memory."""

    window: int = 1024
    """Maximum number of events of one call that are under way, unacknowledged by a receiver; then ``update`` waits,
    as long as one is alive, and ``progress`` is coalesced."""
    history: int = 4096
    """Maximum number of events of one call that are kept, beside its ``open``, when nobody acknowledges."""
    history_bytes: int = 16 * 1024 * 1024
    """Maximum size that these may have together, in bytes."""
    closed_calls: int = 256
    """Maximum number of ended calls whose events are kept until acknowledged."""


class Outlet(Protocol):
    """The part of a publisher that its calls' writers use."""

    limits: PublisherLimits
    receivers: Receivers
    instance: str

    def publish(self, encoded: bytes) -> None:
        """Send an encoded event."""

    def ended(self, writer: CallWriter) -> None:
        """Keep a closed call until it is acknowledged."""

    def receiver_alive(self) -> bool:
        """Return whether somebody acknowledged lately."""


class CallWriter:
    """The writer of one call's tool stream, made by ``ToolStreamPublisher.begin``."""

    def __init__(self, publisher: Outlet, call_id: str, module: str, skill: str, caller: str) -> None:
        self.call_id, self.module, self.skill, self.caller = call_id, module, skill, caller
        self.outcome: Outcome | None = None
        """The outcome of the call, or None before its end."""
        self.acknowledged_at = float("-inf")
        """The time on the loop's clock at which any receiver that wants more of it last acknowledged something."""
        self._begun_at = clock.monotonic()
        self._parent_heard_at = clock.monotonic() if parent_of(call_id) else float("-inf")
        self._packer = EventPacker(call_id, module, skill, caller, publisher.instance)
        self._publisher = publisher
        self._acked: dict[str, int] = {}
        self._safe = 0
        self._history = EventHistory(max_events=publisher.limits.history, max_bytes=publisher.limits.history_bytes)
        self._space = asyncio.Event()
        self._coalesced = b""
        """The progress that waits for space, as its bytes; empty if there is none."""
        self._coalesced_count = 0
        """The number of those that it stands for."""
        self._called_out = False

    @property
    def closed(self) -> bool:
        """True if its stream has ended."""
        return self.outcome is not None

    @property
    def alone(self) -> bool:
        """True if no receiver is there: none has acknowledged anything of this process, though there was time."""
        return not self._publisher.receivers.known() and clock.monotonic() - self._begun_at >= RECEIVER_GONE_S

    @property
    def last_seq(self) -> int:
        """The number of the newest event, or 0 before the first."""
        return self._history.last_seq

    async def update(self, text: str, data: Mapping[str, Any]) -> None:
        """Send an update; wait while the window is full. Raises ``StreamClosedError`` after the close."""
        self._check_open("an update")
        if self._full():
            await self._wait_for_space()
            self._check_open("an update")
        self._flush_progress()
        self._emit("update", text, data)
        if self.last_seq % _TURN == 0:
            await asyncio.sleep(0)  # a skill that never waits must not keep the acknowledgements out

    def progress(self, text: str, data: Mapping[str, Any]) -> None:
        """Send progress, or keep it until there is space, when the newest stands for all that came since.

        Raises ``StreamClosedError`` after the close, and as ``EventPacker.pack`` does.
        """
        self._check_open("progress")
        if self._full():
            self._coalesce(text, data)
        else:
            self._flush_progress()
            self._emit("progress", text, data)

    def close(self, outcome: Outcome, text: str, data: Mapping[str, Any]) -> None:
        """End the stream, once; a second close is ignored. This never waits."""
        if self.closed:
            return
        self._flush_progress()
        self._emit("close", text, {"outcome": str(outcome), **data})
        self.outcome = outcome
        self._space.set()
        self._publisher.ended(self)

    @property
    def unacknowledged(self) -> int:
        """The number of events that some receiver has not acknowledged; all of them while there is no receiver."""
        return self.last_seq - self._safe

    def emit_open(self, text: str, data: Mapping[str, Any]) -> None:
        """Send the first event; for the publisher."""
        self._emit("open", text, data)

    def acknowledge(self, receiver: str, to_seq: int) -> None:
        """Note that a receiver has all events up to ``to_seq``; for the publisher.

        A receiver that has more than there are has closed the call in its module's stead: it does not answer for it.
        Nor does the host of its parent, which may be as cut off as this one.
        """
        if receiver == PARENT:
            self._parent_heard_at = clock.monotonic()
        elif self.closed or to_seq <= self.last_seq:
            self.acknowledged_at = clock.monotonic()
        self._acked[receiver] = max(self._acked.get(receiver, 0), min(to_seq, self.last_seq))
        self.forget()
        if not self._full():
            self._space.set()  # whoever waits goes on in the loop's next turn
            self._flush_progress()

    def forget(self) -> None:
        """Let go of events that every receiver has; for the publisher."""
        known = self._publisher.receivers.known()
        if known:
            waiting = [*known, PARENT] if self._parent_waits(PARENT_GONE_S) else known
            self._acked = {name: self._acked.get(name, 0) for name in waiting}
            self._safe = min(self._acked.values())
        self._history.forget(self._safe)

    def retransmit(self, from_seq: int, to_seq: int) -> tuple[list[bytes], tuple[int, int] | None]:
        """Return events of a range, and the part of it that is not kept any more. The ``open`` is always kept."""
        return self._history.range(from_seq, to_seq, _NACK_SLICE)

    def newest(self) -> bytes:
        """Return the newest event that is kept."""
        return self._history.newest

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise StreamClosedError(f"{what} was sent on call {self.call_id} of {self.skill!r}, which is closed")

    def _full(self) -> bool:
        if self.unacknowledged < self._publisher.limits.window:
            return False
        names = self._publisher.receivers.alive()
        alive = [self._acked.get(name, 0) for name in names]
        if names and self._parent_waits(RECEIVER_GONE_S):
            alive.append(self._acked.get(PARENT, 0))
        return self.last_seq - min(alive, default=self._safe) >= self._publisher.limits.window

    def _parent_waits(self, within_s: float) -> bool:
        """Return whether the host of its parent, heard within the last ``within_s`` seconds, counts as there."""
        return clock.monotonic() - self._parent_heard_at <= within_s

    async def _wait_for_space(self) -> None:
        while self._full() and not self.closed:
            if self._publisher.receiver_alive():
                # When the time is over a receiver counts as gone, unless it acknowledged something else.
                await self._wait(RECEIVER_GONE_S)
            elif not self._called_out:
                # One that had nothing to acknowledge for a while answers now, if it is there.
                self._called_out = True
                await self._wait(RECEIVER_ANSWERS_S)
            else:
                return

    async def _wait(self, timeout_s: float) -> None:
        self._space.clear()
        await ends_within(timeout_s, self._space.wait())

    def _coalesce(self, text: str, data: Mapping[str, Any]) -> None:
        """Keep progress in place of the one that was kept before, as the bytes that will be sent: what is wrong with
        it its sender hears of now. Where there is no room for their number, it stands for the others silently."""
        count = self._coalesced_count + 1
        try:
            self._coalesced = self._packed("progress", text, {**data, "coalesced": count} if count > 1 else data)
        except SkillError:
            self._coalesced = self._packed("progress", text, data)
        self._coalesced_count = count

    def _flush_progress(self) -> None:
        """Send the progress that was kept, before any other event."""
        if self._coalesced:
            encoded, self._coalesced, self._coalesced_count = self._coalesced, b"", 0
            self._send(encoded)

    def _emit(self, type: EventType, text: str, data: Mapping[str, Any]) -> None:
        self._send(self._packed(type, text, data))

    def _packed(self, type: EventType, text: str, data: Mapping[str, Any]) -> bytes:
        """The bytes of the next event. Raises as ``EventPacker.pack`` does."""
        return self._packer.pack(clock.utime(), self._history.last_seq + 1, type, text, data)

    def _send(self, encoded: bytes) -> None:
        self._publisher.publish(encoded)
        self._history.append(encoded)  # behind the sending, which it need not keep waiting
