"""The sending end of tool streams: it numbers events, keeps them until they are safe, and sends them again when
asked."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ToolStreamRequest
from dimos_streams.tool_stream.addressee import first_texts
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.bounds import REQUEST_BYTES
from dimos_streams.tool_stream.protocol.channels import ACK, DESCRIBE, EVENTS, GONE, NACK, PARENT, REQUESTS
from dimos_streams.tool_stream.sending.call_writer import CallWriter, PublisherLimits
from dimos_streams.tool_stream.sending.receivers import RECEIVER_FORGOTTEN_S, Receivers
from dimos_streams.tool_stream.signature import parse_signature

_log = LimitedLog(logging.getLogger(__name__))

_RESEND_BYTES_PER_S = 32 * 1024 * 1024
"""Maximum number of bytes per second that are sent again."""


class ToolStreamPublisher:
    """The publisher of one process's tool streams. Use from the bus's loop only.

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
        """The instance that goes with each event, and that receivers name in their requests. Set it before the first
        call."""
        self._named_at = float("-inf")
        """The time on the loop's clock at which a receiver last named it."""
        self._nacks = Allowance(_RESEND_BYTES_PER_S, _RESEND_BYTES_PER_S)
        self._bus = bus
        self._open: dict[str, CallWriter] = {}
        self._ended: OrderedDict[str, CallWriter] = OrderedDict()
        self._subscription: Subscription | None = None
        self._drained: asyncio.Event | None = None

    def start(self) -> None:
        """Listen for requests. The bus must be open."""
        self._subscription = self._bus.subscribe(
            REQUESTS, self._on_request, capacity_bytes=REQUEST_BYTES, largest=ONE_PIECE
        )

    def stop(self) -> None:
        """Stop listening. Stopping twice is fine."""
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
        """Return whether a call of this id is open or ended lately."""
        return call_id in self._open or call_id in self._ended

    def repeat(self, call_id: str) -> None:
        """Send a known call's newest event again, for somebody who seems to have missed it."""
        writer = self._open.get(call_id) or self._ended.get(call_id)
        if writer is not None:
            self.publish(writer.newest())

    def heartbeat_calls(self, module: str) -> list[tuple[str, int]]:
        """Return a module's calls of which a receiver may miss something, each with its last seq: for heartbeats."""
        return [(writer.call_id, writer.last_seq) for writer in self._of(module)]

    def answered(self, module: str, since: float) -> bool:
        """Return whether a receiver acknowledged something of a module's calls since a moment, or none is there to do
        so."""
        if not self.receiver_alive():
            return True
        writers = self._of(module)
        return not writers or any(writer.acknowledged_at >= since for writer in writers)

    async def drain(self, timeout_s: float) -> None:
        """Wait until a receiver that is alive has everything, within a bound."""
        if self._ended and self.receiver_alive():
            self._drained = asyncio.Event()
            await ends_within(timeout_s, self._drained.wait())

    def receiver_alive(self) -> bool:
        """Return whether somebody acknowledged lately."""
        return bool(self.receivers.alive())

    def publish(self, encoded: bytes) -> None:
        """Send an encoded event; for ``CallWriter``."""
        self._bus.publish(EVENTS, encoded)

    def ended(self, writer: CallWriter) -> None:
        """Keep a closed call until it is acknowledged; for ``CallWriter``. Of too many, those that never began are
        dropped first: anybody can ask for such."""
        self._open.pop(writer.call_id, None)
        self._ended[writer.call_id] = writer
        while len(self._ended) > self.limits.closed_calls:
            rejected = (call_id for call_id, each in self._ended.items() if each.outcome is Outcome.REJECTED)
            del self._ended[next(rejected, next(iter(self._ended)))]

    def _on_request(self, channel: str, data: bytes) -> None:
        first = first_texts(ToolStreamRequest, data, 3)
        if first is not None and first[1] != DESCRIBE and not self.knows(first[2]):
            return
        try:
            request = decode(ToolStreamRequest, data, channel=channel)
        except MessageError as error:
            _log.warning("skipped: %s", error)
            return
        if request.kind == DESCRIBE:
            self._on_describe()
            return
        writer = self._open.get(request.call_id) or self._ended.get(request.call_id)
        receiver, instance = parse_signature(request.receiver)
        if writer is None or not self._is_meant(instance):
            return
        if request.kind == ACK:
            if receiver != PARENT:  # that one receives a single call, and none of the others waits for it
                self.receivers.heard(receiver)
            writer.acknowledge(receiver, request.to_seq)
            if writer.closed:
                self._let_go()
        elif request.kind == NACK:
            self._nack(writer, request)

    def _is_meant(self, instance: str) -> bool:
        """Return whether a request is from somebody who has read this instance's events. A request that names no
        instance counts only if nobody else is waited for: in a flood, or behind a cut, the bridge may be silent for a
        while."""
        now = clock.monotonic()
        if instance == self.instance:
            self._named_at = now
            return True
        return not instance and now - self._named_at > RECEIVER_FORGOTTEN_S

    def _let_go(self) -> None:
        """Forget ended calls that every receiver has to the end; the host remembers their ids."""
        for call_id, writer in list(self._ended.items()):
            writer.forget()
            if not writer.unacknowledged:
                del self._ended[call_id]
        if self._drained is not None and not self._ended:
            self._drained.set()

    def _of(self, module: str) -> list[CallWriter]:
        if not (self._open or self._ended):  # as of most modules at most times
            return []
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
                kind=GONE,
                call_id=writer.call_id,
                from_seq=gone[0],
                to_seq=gone[1],
            )
            self._bus.publish(REQUESTS, encode(answer))
