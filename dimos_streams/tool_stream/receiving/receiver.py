"""The receiving end of tool streams: every event of every call once, in order, or an explicit gap."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.bus.subscription import Mark
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import BusError, MessageError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.tool_stream.addressee import first_texts
from dimos_streams.tool_stream.event import MAX_SEQ, ToolEvent
from dimos_streams.tool_stream.flood_limit import MARK_BYTES, FloodLimit
from dimos_streams.tool_stream.protocol.bounds import REQUEST_BYTES
from dimos_streams.tool_stream.protocol.call_ids import is_call_id
from dimos_streams.tool_stream.protocol.channels import EVENTS, GONE, REQUESTS
from dimos_streams.tool_stream.receiving.acks import ACK_EVERY, Acks
from dimos_streams.tool_stream.receiving.batch import BatchedDelivery
from dimos_streams.tool_stream.receiving.event_admission import EventAdmission
from dimos_streams.tool_stream.receiving.nacks import NackSchedule
from dimos_streams.tool_stream.receiving.received_call import CLOSED, Names, ReceivedCall, ResumePoint
from dimos_streams.tool_stream.receiving.received_calls import ReceivedCalls
from dimos_streams.tool_stream.receiving.reorder_buffer import PROXY
from dimos_streams.tool_stream.receiving.requests import Requests
from dimos_streams.tool_stream.receiving.statistics import ReceiverStatistics
from dimos_streams.tool_stream.wire.layout import call_id_of, instance_ending, may_be_of
from dimos_streams.tool_stream.wire.unpacking import unpack_event

_log = LimitedLog(logging.getLogger(__name__))

_QUEUE_BYTES = 1024 * 1024
_MOST_REFUSED = 250.0
"""About the maximum number of events that are refused per second. On LCM the kernel's packet filter drops the rest;
other buses can't."""


class ToolStreamReceiver:
    """A receiver that delivers batches of events, each call's in order. Use from the bus's loop only.

    ``deliver`` must have made the events safe when it returns: then they are acknowledged and the publisher
    forgets them. If it raises, they are delivered again with the next batch.
    """

    def __init__(
        self,
        bus: Bus,
        deliver: Callable[[list[ToolEvent]], None],
        *,
        may_open: Callable[[ToolEvent], bool],
        proxy: Callable[[], str] = str,
        resume: Callable[[str], ResumePoint] | None = None,
        name: str = "receiver",
        wanted: Callable[[str], bool] | None = None,
        instances: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Receive from a bus.

        Args:
            bus: where the events come from, and requests for missing ones go to.
            deliver: takes the events, see the class.
            may_open: says whether an event can be of the instance that runs its call. It is asked until the first
                event was delivered; the sender of that event owns the call from then on.
            proxy: returns the instance that may speak in the stead of every call's module, empty for none.
            resume: says where the receiver stands in a call that it does not remember.
            name: the receiver's name in its requests.
            wanted: chooses calls by their ids; None is for all of them. A call once begun is received to its end,
                even if ``wanted`` would now refuse it.
            instances: returns those whose events a flood of others must not drown.
        """
        self._bus = bus
        self._wanted = wanted
        self._resume = resume or (lambda call_id: ResumePoint())
        self._calls = ReceivedCalls()
        self._requests = Requests(bus, name)
        self._acks = Acks(self._calls, self._requests, lambda: {event.call_id for event in self._batch.events})
        self._nacks = NackSchedule(self._calls, self._requests, self._give_up, lambda: self.missed_at)
        self._admission = EventAdmission(may_open, proxy)
        self._instances = instances
        self._flood = FloodLimit(_MOST_REFUSED, self._marks)
        self._batch = BatchedDelivery(deliver, self._acknowledge)
        self._subscriptions: list[Subscription] = []
        self._delivered = self._duplicates = self._malformed = self._gaps = 0

    def start(self) -> None:
        """Begin to receive. The bus must be open. Raises ``BusError`` if it refuses."""
        answers = self._bus.subscribe(REQUESTS, self._on_request, capacity_bytes=REQUEST_BYTES, largest=ONE_PIECE)
        try:
            self._events = self._bus.subscribe(
                EVENTS, self._on_event, capacity=65536, capacity_bytes=_QUEUE_BYTES, largest=ONE_PIECE
            )
        except BusError:
            answers.close()
            raise
        self._nacks.start()
        self._batch.start(self._events)
        self._flood.watch(self._events)
        self._subscriptions = [self._events, answers]

    def stop(self) -> None:
        """Deliver what is in hand and receive no more. Stopping twice is fine."""
        if not self._subscriptions:
            return
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
        self._nacks.stop()
        self._batch.stop()
        self._acks.send()

    def on_status(self, status: ModuleStatus, *, active: bool = True) -> None:
        """Take a heartbeat: it names last events that may never have arrived.

        An instance that does not speak for its module (``active`` False) is heard on calls that are its own only.
        A receiver that has stopped takes none.
        """
        if not self._subscriptions:
            return
        for call_id, last_seq in zip(status.call_ids, status.last_seqs, strict=False):
            call = self._calls.get(call_id)
            if not active and (call is None or call.instance != status.instance):
                continue
            if call is None:
                if not (self._wants(call_id) and self._calls.has_room_for_names and 1 <= last_seq <= MAX_SEQ):
                    continue  # the next heartbeat names it again
                call = self._resumed(call_id)
                self._calls.add(call)
            if call.instance in ("", status.instance):
                self._take_name(call, last_seq, status)
            elif call.stage is CLOSED:
                self._requests.ack_rerun(call, status.instance)

    def _take_name(self, call: ReceivedCall, last_seq: int, status: ModuleStatus) -> None:
        """Ask for what is missing of a call up to the last event that a heartbeat of its module names."""
        call.module, call.presumed_instance, call.named_at = status.module, status.instance, clock.monotonic()
        if call.stage is not CLOSED and call.highest < last_seq <= MAX_SEQ:
            call.highest = last_seq
            self._nacks.arm(call)
        elif call.stage is not CLOSED and call.instance != status.instance and 1 <= last_seq <= call.delivered:
            # Every event so far came from a proxy or names no instance, so the module's own last event, perhaps
            # the close, may be missing: ask for it.
            self._requests.nack(call, last_seq, last_seq)
        self._acks.soon(call.call_id, at_once=False)

    def finish(self, call_id: str) -> int:
        """Take nothing more of a call, because somebody else closes it; return the last seq that was delivered."""
        call = self._call(call_id)
        self._calls.close(call)
        return call.delivered

    def heard_at(self, call_id: str) -> float:
        """Return the time on the loop's clock at which an event of a call last came from the instance that runs it,
        whether or not it could be delivered."""
        call = self._calls.get(call_id)
        return float("-inf") if call is None else call.heard_at

    @property
    def missed_at(self) -> float:
        """The time on the loop's clock at which there was last no room for events."""
        return self._events.missed_at if self._subscriptions else float("-inf")

    def statistics(self) -> ReceiverStatistics:
        """Return the counters of what has come in."""
        nacks, refused = self._requests.nacks, self._admission.refused
        return ReceiverStatistics(self._delivered, self._duplicates, self._malformed, nacks, self._gaps, refused)

    def refusal_note(self) -> str:
        """Return a note for operators on the call that somebody else wrote on in the last ``NOTED_S``; empty for
        none."""
        return self._admission.note()

    def _call(self, call_id: str) -> ReceivedCall:
        return self._calls.get(call_id) or self._resumed(call_id)

    def _resumed(self, call_id: str) -> ReceivedCall:
        return self._calls.make(call_id, self._resume(call_id))

    def _on_event(self, channel: str, data: bytes) -> None:
        is_refused = not self._receive(channel, data)
        if self._batch.events:
            self._batch.came(len(data))
        self._flood.came(limited=is_refused)  # after delivery, because readers are waiting

    def _wants(self, call_id: str) -> bool:
        return self._wanted is None or self._wanted(call_id)

    def _marks(self) -> Iterator[Mark]:
        for instance in self._instances():
            ending = instance_ending(instance)[-MARK_BYTES:]
            yield Mark(-len(ending), ending)

    def _receive(self, channel: str, data: bytes) -> bool:
        """Take an event's bytes; return False if they are refused."""
        call_id = call_id_of(data)
        call = self._calls.get(call_id)
        if call is None and not self._wants(call_id):
            return True
        if call is None and is_call_id(call_id):
            call = self._resumed(call_id)
        if call is not None and not self._admission.may_read(call, data):
            return False
        try:
            read = unpack_event(data, channel) if call is None else call.unpacker.unpack(data, channel)
        except MessageError as error:
            self._malformed += 1
            if call is not None and may_be_of(data, call.instance):
                call.answers_unreadably = True
            whose = "" if call is None or call.names is None else f" of module {call.names.module!r}, call {call_id}"
            _log.warning("skipped an event%s: %s", whose, error)
            return False
        call = call or self._call(read.call_id)
        event = self._admission.admitted(call, read)
        if event is None:
            return False
        if call.instance:
            call.heard_at = clock.monotonic()
        if event.type == "close" and event.seq <= call.delivered:
            # Whoever has closed a call in its module's stead may have heard less of it than this receiver has; and of
            # a call that nobody here has begun, somebody else may have taken the first numbers.
            event = replace(event, seq=call.delivered + 1)
        if call.stage is CLOSED or event.seq <= call.delivered or event.seq in call.pending.events:
            self._duplicates += 1
            self._calls.heard(call)
            self._acks.soon(event.call_id, at_once=False)
        else:
            self._take(call, event, data)
        return True

    def _take(self, call: ReceivedCall, event: ToolEvent, packed: bytes) -> None:
        """Deliver an event that has not come before, or keep its bytes if it has come too early."""
        call.highest = max(call.highest, event.seq)
        if event.instance not in ("", PROXY):
            call.presumed_instance = event.instance
        if event.seq == call.delivered + 1:
            self._advance(call, event)
        else:
            call.pending.keep(event, packed)
        self._calls.heard(call)
        if call.highest > call.delivered and call.stage is not CLOSED:
            self._nacks.arm(call)

    def _advance(self, call: ReceivedCall, event: ToolEvent) -> None:
        """Deliver an event and the ones that waited for it."""
        following: ToolEvent | None = event
        while following is not None:
            if following.instance not in ("", PROXY) and not call.instance:
                self._admission.refused += call.assign(following.instance)
                self._admission.assigned(following.call_id, following.instance)
            self._batch.events.append(following)
            call.delivered = following.seq
            if call.names is None and following.type != "gap":  # which may know its module only
                call.names = Names.of(following)
            if following.type == "close":
                self._calls.close(call)
                break
            following = call.pending.pop(call.delivered + 1) if call.pending.events else None
        call.attempts, call.nack_at, call.answers_unreadably = 0, None, False

    def _acknowledge(self, events: list[ToolEvent]) -> None:
        """Have what was handed over acknowledged."""
        self._delivered += len(events)
        for call_id in dict.fromkeys(event.call_id for event in events):
            call = self._call(call_id)
            self._acks.soon(call_id, at_once=call.stage is CLOSED or call.delivered - call.acked >= ACK_EVERY)

    def _give_up(self, call: ReceivedCall, to_seq: int) -> None:
        """Say that events up to ``to_seq`` are gone, and go on behind them."""
        self._gaps += to_seq - call.delivered
        self._advance(call, call.gap(to_seq))
        self._calls.heard(call)
        if call.highest > call.delivered and call.stage is not CLOSED:
            self._nacks.arm(call)
        self._batch.hand_over()

    def _on_request(self, channel: str, data: bytes) -> None:
        """Take a publisher's answer that it has not kept what was asked for, or a part of it."""
        texts = first_texts(ToolStreamRequest, data, 3)
        if texts is not None and (texts[1] != GONE or self._calls.get(texts[2]) is None):
            return
        try:
            request = decode(ToolStreamRequest, data, channel=channel)
        except MessageError as error:
            self._malformed += 1
            _log.warning("skipped: %s", error)
            return
        if request.kind != GONE:
            return
        call = self._calls.get(request.call_id)
        if call is None or call.stage is CLOSED or request.from_seq > call.delivered + 1:
            return  # what comes before is still to be had
        if not self._requests.is_answered(request, call):
            return  # an answer to somebody else's question
        if call.delivered < request.to_seq <= call.highest:
            first = call.pending.first
            self._give_up(call, request.to_seq if first is None else min(request.to_seq, first - 1))
