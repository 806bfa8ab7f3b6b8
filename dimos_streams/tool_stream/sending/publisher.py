"""The sending end of tool streams: numbers events, keeps them until they are safe, sends them again when asked."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams import clock
from dimos_streams.allowance import Allowance
from dimos_streams.bus import Bus, Subscription
from dimos_streams.errors import MessageError, StreamClosedError
from dimos_streams.limited_log import LimitedLog
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ToolStreamRequest
from dimos_streams.tool_stream.event import EVENTS, NACK, REQUEST_BYTES, REQUESTS, EventType, Outcome, json_text
from dimos_streams.tool_stream.sending.history import EventHistory
from dimos_streams.tool_stream.sending.receivers import RECEIVER_GONE_S, Receivers
from dimos_streams.tool_stream.signature import parse_signature
from dimos_streams.tool_stream.wire import EventPacker

_log = LimitedLog(logging.getLogger(__name__))

RECEIVER_ANSWERS_S = 0.3
"""A call that has filled its window waits once for so long, for a receiver that was not heard of lately."""
_TURN = 32
"""Events of one call after which the rest of the loop has its turn."""
_NACK_RATE = 32 * 1024 * 1024
"""Bytes a second that are sent again."""
_NACK_SLICE = 64
"""Events sent again for one request; the receiver asks for the rest."""


@dataclass(frozen=True, slots=True)
class PublisherLimits:
    """Bounds of a publisher's memory."""

    window: int = 1024
    """Events of one call that may be under way, unacknowledged by a receiver; then ``update`` waits, as long as one
    is alive, and ``progress`` is coalesced."""
    history: int = 4096
    """Events of one call that are kept, beside its ``open``, when nobody acknowledges."""
    history_bytes: int = 16 * 1024 * 1024
    """What these may have together."""
    closed_calls: int = 256
    """Ended calls whose events are kept until acknowledged."""


class CallWriter:
    """One call's tool stream, to write. Made by ``ToolStreamPublisher.begin``."""

    def __init__(self, publisher: ToolStreamPublisher, call_id: str, module: str, skill: str, caller: str) -> None:
        self.call_id, self.module, self.skill, self.caller = call_id, module, skill, caller
        self.outcome: Outcome | None = None
        """How the call ended, None before."""
        self.answered = False
        """Whether an update has been sent."""
        self.acknowledged_at = float("-inf")
        """When any receiver that wants more of it acknowledged something, on the loop's clock."""
        self._packer = EventPacker(call_id, module, skill, caller, publisher.instance)
        self._publisher = publisher
        self._acked: dict[str, int] = {}
        self._safe = 0
        self._history = EventHistory(max_events=publisher.limits.history, max_bytes=publisher.limits.history_bytes)
        self._space = asyncio.Event()
        self._coalesced: tuple[str, Mapping[str, Any]] | None = None
        self._coalesced_count = 0
        self._called_out = False

    @property
    def closed(self) -> bool:
        """Whether its stream has ended."""
        return self.outcome is not None

    @property
    def last_seq(self) -> int:
        """Of the newest event, 0 before the first."""
        return self._history.last_seq

    async def update(self, text: str, data: Mapping[str, Any]) -> None:
        """Send an update; waits while the window is full. Raises ``StreamClosedError`` after the close."""
        self._check_open("an update")
        await self._wait_for_space()
        self._check_open("an update")
        self._flush_progress()
        self.answered = True
        self._emit("update", text, data)
        if self.last_seq % _TURN == 0:
            await asyncio.sleep(0)  # a skill that never waits must not keep the acknowledgements out

    def progress(self, text: str, data: Mapping[str, Any]) -> None:
        """Send progress, or keep it until there is space, when the newest stands for all that came since."""
        self._check_open("progress")
        if self._full():
            json_text(data)
            self._coalesced = (text, data)
            self._coalesced_count += 1
        else:
            self._flush_progress()
            self._emit("progress", text, data)

    def close(self, outcome: Outcome, text: str, data: Mapping[str, Any]) -> None:
        """End the stream, once; a second close is ignored. Never waits."""
        if self.closed:
            return
        self._flush_progress()
        self._emit("close", text, {"outcome": str(outcome), **data})
        self.outcome = outcome
        self._space.set()
        self._publisher.ended(self)

    @property
    def unacknowledged(self) -> int:
        """Events that some receiver has not acknowledged; all of them while there is none."""
        return self.last_seq - self._safe

    def emit_open(self, text: str, data: Mapping[str, Any]) -> None:
        """Send the first event; for the publisher."""
        self._emit("open", text, data)

    def acknowledge(self, receiver: str, to_seq: int) -> None:
        """A receiver has all events up to ``to_seq``; for the publisher.

        One that has more than there are has closed the call in its module's stead: it does not answer for it.
        """
        if self.closed or to_seq <= self.last_seq:
            self.acknowledged_at = clock.monotonic()
        self._acked[receiver] = max(self._acked.get(receiver, 0), min(to_seq, self.last_seq))
        self.forget()
        if not self._full():
            if not self.closed:
                self._flush_progress()
            self._space.set()

    def forget(self) -> None:
        """Let go of events that every receiver has; for the publisher."""
        known = self._publisher.receivers.known()
        if known:
            self._acked = {name: self._acked.get(name, 0) for name in known}
            self._safe = min(self._acked.values())
        self._history.forget(self._safe)

    def retransmit(self, from_seq: int, to_seq: int) -> tuple[list[bytes], tuple[int, int] | None]:
        """Events of a range, and the part of it that is not kept any more. The ``open`` is always kept."""
        return self._history.range(from_seq, to_seq, _NACK_SLICE)

    def newest(self) -> bytes:
        """The newest event that is kept."""
        return self._history.newest

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise StreamClosedError(f"{what} was sent on call {self.call_id} of {self.skill!r}, which is closed")

    def _full(self) -> bool:
        if self.unacknowledged < self._publisher.limits.window:
            return False
        alive = [self._acked.get(name, 0) for name in self._publisher.receivers.alive()]
        return self.last_seq - min(alive, default=self._safe) >= self._publisher.limits.window

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
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._space.wait()

    def _flush_progress(self) -> None:
        if self._coalesced is not None:
            text, data = self._coalesced
            self._coalesced, count, self._coalesced_count = None, self._coalesced_count, 0
            self._emit("progress", text, {**data, "coalesced": count} if count > 1 else data)

    def _emit(self, type: EventType, text: str, data: Mapping[str, Any]) -> None:
        encoded = self._packer.pack(clock.utime(), self.last_seq + 1, type, text, data)
        self._history.append(encoded)
        self._publisher.publish(encoded)


class ToolStreamPublisher:
    """Writes the tool streams of one process. Use from the bus's loop only.

    A call that gets a window ahead of its receivers coalesces its ``progress``, and its ``update`` waits. Without a
    receiver no update waits for long, and only the newest events of each call are kept.
    """

    def __init__(
        self, bus: Bus, limits: PublisherLimits | None = None, on_describe: Callable[[], None] | None = None
    ) -> None:
        """``on_describe`` is called when somebody asks the modules of this process to introduce themselves."""
        self._on_describe = on_describe or (lambda: None)
        self.limits = limits or PublisherLimits()
        self.receivers = Receivers()
        self.instance = ""
        """Goes with each event; receivers name it in their requests. Set it before the first call."""
        self._bound = float("-inf")
        """When a receiver named it last."""
        self._nacks = Allowance(_NACK_RATE, _NACK_RATE)
        self._bus = bus
        self._open: dict[str, CallWriter] = {}
        self._ended: OrderedDict[str, CallWriter] = OrderedDict()
        self._subscription: Subscription | None = None
        self._drained: asyncio.Event | None = None

    def start(self) -> None:
        """Listen for requests. The bus must be open."""
        self._subscription = self._bus.subscribe(REQUESTS, self._on_request, capacity_bytes=REQUEST_BYTES)

    def stop(self) -> None:
        """Stop listening. Twice is fine."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def begin(
        self, call_id: str, *, module: str, skill: str, caller: str, text: str, data: Mapping[str, Any]
    ) -> CallWriter:
        """Open a call's stream and send its ``open`` event. Raises ``ValueError`` for an id that was used before."""
        if self.knows(call_id):
            raise ValueError(f"call {call_id!r} has begun already")
        writer = CallWriter(self, call_id, module, skill, caller)
        self._open[call_id] = writer
        writer.emit_open(text, data)
        return writer

    def knows(self, call_id: str) -> bool:
        """Whether a call of this id is open or ended lately."""
        return call_id in self._open or call_id in self._ended

    def repeat(self, call_id: str) -> None:
        """Send a known call's newest event again, for somebody who seems to have missed it."""
        writer = self._open.get(call_id) or self._ended.get(call_id)
        if writer is not None:
            self.publish(writer.newest())

    def live(self, module: str) -> list[tuple[str, int]]:
        """Calls of a module that a receiver may miss something of, with the last seq of each: for heartbeats."""
        return [(writer.call_id, writer.last_seq) for writer in self._of(module)]

    def answered(self, module: str, since: float) -> bool:
        """Whether a receiver acknowledged something of a module's calls since a moment, or there is none to do so."""
        if not self.receiver_alive():
            return True
        writers = self._of(module)
        return not writers or any(writer.acknowledged_at >= since for writer in writers)

    async def drain(self, timeout_s: float) -> None:
        """Wait until a receiver that is alive has everything, within a bound."""
        if self._ended and self.receiver_alive():
            self._drained = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._drained.wait()

    def receiver_alive(self) -> bool:
        """Whether somebody acknowledged lately."""
        return bool(self.receivers.alive())

    def publish(self, encoded: bytes) -> None:
        """Send an encoded event; for ``CallWriter``."""
        self._bus.publish(EVENTS, encoded)

    def ended(self, writer: CallWriter) -> None:
        """Keep a closed call until it is acknowledged; for ``CallWriter``."""
        self._open.pop(writer.call_id, None)
        self._ended[writer.call_id] = writer
        while len(self._ended) > self.limits.closed_calls:
            self._ended.popitem(last=False)

    def _on_request(self, channel: str, data: bytes) -> None:
        try:
            request = decode(ToolStreamRequest, data, channel=channel)
        except MessageError as error:
            _log.warning("skipped: %s", error)
            return
        if request.kind == "describe":
            self._on_describe()
            return
        writer = self._open.get(request.call_id) or self._ended.get(request.call_id)
        receiver, instance = parse_signature(request.receiver)
        if writer is None or not self._is_meant(instance):
            return
        if request.kind == "ack":
            self.receivers.heard(receiver)
            writer.acknowledge(receiver, request.to_seq)
            if writer.closed:
                self._let_go()
        elif request.kind == NACK:
            self._nack(writer, request)

    def _is_meant(self, instance: str) -> bool:
        """Whether a request is of somebody who has read this instance's events. Of one who names none, only while
        nobody else is there."""
        now = clock.monotonic()
        if instance == self.instance:
            self._bound = now
            return True
        return not instance and now - self._bound > RECEIVER_GONE_S

    def _let_go(self) -> None:
        """Forget ended calls that every receiver has to the end; the host remembers their ids."""
        for call_id, writer in list(self._ended.items()):
            writer.forget()
            if not writer.unacknowledged:
                del self._ended[call_id]
        if self._drained is not None and not self._ended:
            self._drained.set()

    def _of(self, module: str) -> list[CallWriter]:
        return [writer for writer in (*self._open.values(), *self._ended.values()) if writer.module == module]

    def _nack(self, writer: CallWriter, request: ToolStreamRequest) -> None:
        found, gone = writer.retransmit(request.from_seq, request.to_seq)
        for encoded in found:
            if self._nacks.take(len(encoded)):  # what is too much is asked for again
                self.publish(encoded)
        if gone:
            answer = ToolStreamRequest(
                utime=clock.utime(),
                receiver=request.receiver,
                kind="gone",
                call_id=writer.call_id,
                from_seq=gone[0],
                to_seq=gone[1],
            )
            self._bus.publish(REQUESTS, encode(answer))
