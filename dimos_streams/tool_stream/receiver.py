"""The receiving end of tool streams: every event of every call once, in order, or an explicit gap."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.errors import MessageError
from dimos_streams.limited_log import LimitedLog
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.tool_stream.event import EVENTS, MAX_SEQ, REQUESTS, ToolEvent
from dimos_streams.tool_stream.wire import unpack_event

_log = LimitedLog(logging.getLogger(__name__))

ACK_EVERY = 64
ACK_DELAY_S = 0.01
SETTLE_S = 0.003
"""How long an event may be overtaken by later ones before it is asked for."""
REPAIR_DELAYS_S = (0.005, 0.01, 0.02, 0.04, 0.08, *(0.16,) * 17)
"""Pauses after each request without an answer; then the events count as gone. 2.9 s in all, and so many requests
that at 30 % loss in both directions one of three million ranges is given up."""
MAX_PENDING = 2048
"""Events of one call kept that came ahead of a missing one; more are dropped and asked for later."""
_MAX_BATCH = 256
"""Events that are handed over together at most."""
_MAX_RANGES = 256
_REMEMBERED = 4096
_EVERYTHING = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a receiver that was not there before stands in a call."""

    delivered: int = 0
    closed: bool = False


@dataclass(frozen=True, slots=True)
class ReceiverStatistics:
    """Counts since the receiver began."""

    delivered: int
    duplicates: int
    malformed: int
    repair_requests: int
    gaps: int
    """Events that were given up, each told to the readers."""


@dataclass(slots=True)
class _Stream:
    delivered: int
    closed: bool
    highest: int = 0
    pending: dict[int, ToolEvent] = field(default_factory=dict)
    acked: int = 0
    attempts: int = 0
    repair_at: float | None = None
    module: str = ""
    last: ToolEvent | None = None


class ToolStreamReceiver:
    """Delivers batches of events, each call's in order. Use from the bus's loop only.

    ``deliver`` must have made the events safe when it returns: then they are acknowledged and the publisher
    forgets them. If it raises, they are delivered again with the next batch.
    """

    def __init__(
        self,
        bus: Bus,
        deliver: Callable[[list[ToolEvent]], None],
        *,
        resume: Callable[[str], Resume] | None = None,
        name: str = "receiver",
    ) -> None:
        self._bus = bus
        self._deliver = deliver
        self._resume = resume or (lambda call_id: Resume())
        self._name = name
        self._streams: OrderedDict[str, _Stream] = OrderedDict()
        self._batch: list[ToolEvent] = []
        self._flushing = False
        self._retry: asyncio.TimerHandle | None = None
        self._to_ack: set[str] = set()
        self._ack_timer: asyncio.TimerHandle | None = None
        self._repair_timer: asyncio.TimerHandle | None = None
        self._subscriptions: list[Subscription] = []
        self._delivered = self._duplicates = self._malformed = self._requests = self._gaps = 0

    def start(self) -> None:
        """Begin to receive. The bus must be open."""
        self._loop = asyncio.get_running_loop()
        self._events = self._bus.subscribe(EVENTS, self._on_event, capacity=65536)
        self._subscriptions = [self._events, self._bus.subscribe(REQUESTS, self._on_request)]

    def stop(self) -> None:
        """Deliver what is in hand and receive no more. Twice is fine."""
        if not self._subscriptions:
            return
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
        for timer in (self._ack_timer, self._repair_timer, self._retry):
            if timer is not None:
                timer.cancel()
        self._flush()
        self._send_acks()

    def on_status(self, status: ModuleStatus) -> None:
        """Take a heartbeat: it tells of last events that never arrived, and its sender of those that did."""
        for call_id, last_seq in zip(status.call_ids, status.last_seqs, strict=False):
            stream = self._stream(call_id)
            stream.module = status.module
            if not stream.closed and stream.highest < last_seq <= MAX_SEQ:
                stream.highest = last_seq
                self._arm_repair(stream)
            self._ack_soon(call_id, at_once=False)

    def finish(self, call_id: str) -> int:
        """Take nothing more of a call, because somebody else closes it; the last seq that was delivered."""
        stream = self._stream(call_id)
        stream.closed = True
        stream.pending.clear()
        stream.repair_at = None
        return stream.delivered

    def statistics(self) -> ReceiverStatistics:
        """What has come in."""
        return ReceiverStatistics(self._delivered, self._duplicates, self._malformed, self._requests, self._gaps)

    def _stream(self, call_id: str) -> _Stream:
        stream = self._streams.get(call_id)
        if stream is None:
            known = self._resume(call_id)
            stream = _Stream(known.delivered, known.closed, highest=known.delivered)
            self._streams[call_id] = stream
            self._forget_old()
        return stream

    def _forget_old(self) -> None:
        """Closed calls are remembered to tell duplicates; the oldest of them go, open ones stay."""
        excess = len(self._streams) - _REMEMBERED
        if excess > 0:
            for call_id in [c for c, stream in self._streams.items() if stream.closed][:excess]:
                del self._streams[call_id]

    def _on_event(self, channel: str, data: bytes) -> None:
        self._take(channel, data)
        if not self._batch:
            return
        # What has come in together is handed over together; one that comes alone waits for nothing.
        if not self._events.waiting or len(self._batch) >= _MAX_BATCH:
            self._flush()
        elif not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _take(self, channel: str, data: bytes) -> None:
        try:
            event = unpack_event(data, channel)
        except MessageError as error:
            self._malformed += 1
            _log.warning("skipped: %s", error)
            return
        stream = self._stream(event.call_id)
        if stream.closed or event.seq <= stream.delivered or event.seq in stream.pending:
            self._duplicates += 1
            self._ack_soon(event.call_id, at_once=False)
            return
        stream.highest = max(stream.highest, event.seq)
        if event.seq == stream.delivered + 1:
            self._advance(stream, event)
        elif len(stream.pending) < MAX_PENDING:
            stream.pending[event.seq] = event
        if stream.highest > stream.delivered and not stream.closed:
            self._arm_repair(stream)

    def _advance(self, stream: _Stream, event: ToolEvent) -> None:
        """Deliver an event and the ones that waited for it."""
        following: ToolEvent | None = event
        while following is not None:
            self._batch.append(following)
            stream.delivered, stream.last = following.seq, following
            stream.closed = following.type == "close"
            following = None if stream.closed else stream.pending.pop(stream.delivered + 1, None)
        stream.attempts, stream.repair_at = 0, None
        if stream.closed:
            stream.pending.clear()

    def _flush(self) -> None:
        """Hand over what has come in, then acknowledge it."""
        self._flushing = False
        batch = self._batch
        if not batch:
            return
        try:
            self._deliver(batch)
        except Exception:
            _log.exception("%d events could not be delivered and will be again", len(batch))
            if self._retry is not None:
                self._retry.cancel()
            self._retry = self._loop.call_later(REPAIR_DELAYS_S[0], self._flush)
            return
        self._batch = []
        self._delivered += len(batch)
        for call_id in dict.fromkeys(event.call_id for event in batch):
            stream = self._streams[call_id]
            self._ack_soon(call_id, at_once=stream.closed or stream.delivered - stream.acked >= ACK_EVERY)

    def _ack_soon(self, call_id: str, *, at_once: bool) -> None:
        self._to_ack.add(call_id)
        if at_once:
            self._send_acks()
        elif self._ack_timer is None:
            self._ack_timer = self._loop.call_later(ACK_DELAY_S, self._send_acks)

    def _send_acks(self) -> None:
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None
        undelivered = {event.call_id for event in self._batch}
        for call_id in sorted(self._to_ack - undelivered):
            stream = self._streams.get(call_id)
            if stream is not None:
                stream.acked = stream.delivered
                # A closed call wants nothing more, whatever its publisher still holds or sends.
                self._request("ack", call_id, 1, _EVERYTHING if stream.closed else stream.delivered)
        self._to_ack &= undelivered

    def _arm_repair(self, stream: _Stream) -> None:
        if stream.repair_at is None:
            stream.repair_at = self._loop.time() + SETTLE_S
        self._schedule_repair()

    def _schedule_repair(self) -> None:
        due = [s.repair_at for s in self._streams.values() if s.repair_at is not None] if self._streams else []
        if not due or not self._subscriptions:
            return
        when = min(due)
        if self._repair_timer is not None:
            if self._repair_timer.when() <= when and not self._repair_timer.cancelled():
                return
            self._repair_timer.cancel()
        self._repair_timer = self._loop.call_at(when, self._repair_due)

    def _repair_due(self) -> None:
        self._repair_timer = None
        now = self._loop.time()
        for call_id, stream in list(self._streams.items()):
            if stream.repair_at is None or stream.repair_at > now:
                continue
            missing = _missing(stream)
            if not missing:
                stream.repair_at = None
            elif stream.attempts >= len(REPAIR_DELAYS_S):
                self._give_up(call_id, stream, missing[0][1])
            else:
                for first, last in missing[:_MAX_RANGES]:
                    self._request("repair", call_id, first, last)
                stream.repair_at = now + REPAIR_DELAYS_S[stream.attempts]
                stream.attempts += 1
        self._schedule_repair()

    def _give_up(self, call_id: str, stream: _Stream, to_seq: int) -> None:
        """Say that events up to ``to_seq`` are gone, and go on behind them."""
        first = stream.delivered + 1
        known = stream.last or next(iter(stream.pending.values()), None)
        gap = ToolEvent(
            utime=clock.utime(),
            call_id=call_id,
            seq=to_seq,
            type="gap",
            module=known.module if known else stream.module,
            skill=known.skill if known else "",
            caller=known.caller if known else "",
            text=f"events {first} to {to_seq} of this call are lost",
            data={"from_seq": first, "to_seq": to_seq},
        )
        self._gaps += to_seq - first + 1
        self._advance(stream, gap)
        if stream.highest > stream.delivered and not stream.closed:
            self._arm_repair(stream)
        self._flush()

    def _on_request(self, channel: str, data: bytes) -> None:
        """A publisher's answer that it has not kept (a part of) what was asked for."""
        try:
            request = decode(ToolStreamRequest, data, channel=channel)
        except MessageError as error:
            self._malformed += 1
            _log.warning("skipped: %s", error)
            return
        if request.kind != "gone" or request.receiver != self._name:
            return
        stream = self._streams.get(request.call_id)
        if stream is None or stream.closed or request.from_seq > stream.delivered + 1:
            return  # what comes before is still to be had
        if stream.delivered < request.to_seq <= stream.highest:
            to_seq = min([request.to_seq, *(seq - 1 for seq in stream.pending)])
            if to_seq > stream.delivered:
                self._give_up(request.call_id, stream, to_seq)

    def _request(self, kind: str, call_id: str, from_seq: int, to_seq: int) -> None:
        if kind == "repair":
            self._requests += 1
        request = ToolStreamRequest(
            utime=clock.utime(), receiver=self._name, kind=kind, call_id=call_id, from_seq=from_seq, to_seq=to_seq
        )
        self._bus.publish(REQUESTS, encode(request))


def _missing(stream: _Stream) -> list[tuple[int, int]]:
    """Ranges of seqs that are known to exist and have not come."""
    ranges: list[tuple[int, int]] = []
    expected = stream.delivered + 1
    for seq in [*sorted(stream.pending), stream.highest + 1]:
        if seq > expected:
            ranges.append((expected, seq - 1))
        expected = max(expected, seq + 1)
    return ranges
