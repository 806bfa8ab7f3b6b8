"""What a call's writer sends and keeps, by what its receivers have acknowledged."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ToolStreamRequest
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.channels import ACK, EVENTS, GONE, NACK, PARENT, REQUESTS
from dimos_streams.tool_stream.sending import publisher as publishing
from dimos_streams.tool_stream.sending.call_writer import CallWriter, PublisherLimits
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher
from dimos_streams.tool_stream.sending.receivers import RECEIVER_FORGOTTEN_S, RECEIVER_GONE_S, Receivers
from dimos_streams.tool_stream.wire.unpacking import unpack_event

pytestmark = [pytest.mark.feature("A6"), pytest.mark.virtual_time]

_WINDOW = 4


class _Outlet:
    """A publisher's part in its calls, which keeps what they send."""

    def __init__(self) -> None:
        self.limits = PublisherLimits(window=_WINDOW)
        self.receivers = Receivers()
        self.instance = "mine"
        self.sent: list[ToolEvent] = []

    def publish(self, encoded: bytes) -> None:
        self.sent.append(unpack_event(encoded))

    def ended(self, writer: CallWriter) -> None:
        pass

    def receiver_alive(self) -> bool:
        return bool(self.receivers.alive())

    def acknowledge(self, writer: CallWriter, receiver: str, to_seq: int) -> None:
        self.receivers.heard(receiver)
        writer.acknowledge(receiver, to_seq)

    def said(self) -> list[tuple[int, str, object]]:
        """The number and the text of each event, and for how many it stands."""
        return [(event.seq, event.text, event.data.get("coalesced", 1)) for event in self.sent]


def _begun(call_id: str = "call") -> tuple[_Outlet, CallWriter]:
    outlet = _Outlet()
    writer = CallWriter(outlet, call_id, "m", "s", "c")
    writer.emit_open("", {})
    return outlet, writer


async def test_as_many_events_are_under_way_as_the_window_has() -> None:
    outlet, writer = _begun()
    outlet.receivers.heard("bridge")
    for number in range(_WINDOW):
        writer.progress(str(number), {})
    assert [seq for seq, *_ in outlet.said()] == [1, 2, 3, 4]


async def test_progress_that_was_kept_comes_before_an_update_and_under_its_own_number() -> None:
    outlet, writer = _begun()
    outlet.receivers.heard("bridge")
    for number in range(5):
        writer.progress(str(number), {})
    await writer.update("after", {})
    assert outlet.said()[4:] == [(5, "4", 2), (6, "after", 1)]


async def test_progress_stands_for_what_was_kept_since_the_last_that_was_sent() -> None:
    outlet, writer = _begun()
    outlet.acknowledge(writer, "bridge", 1)
    for to_seq in (5, 9):
        for number in range(10):
            writer.progress(str(number), {})
        outlet.acknowledge(writer, "bridge", to_seq)
    assert [said for said in outlet.said() if said[1] == "9"] == [(6, "9", 6), (10, "9", 7)]


async def test_an_acknowledgement_that_was_overtaken_takes_nothing_back() -> None:
    outlet, writer = _begun()
    await writer.update("", {})
    outlet.acknowledge(writer, "bridge", 2)
    outlet.acknowledge(writer, "bridge", 1)
    assert writer.unacknowledged == 0


async def test_what_one_receiver_lacks_is_kept_though_another_has_it() -> None:
    outlet, writer = _begun()
    for _ in range(2):
        await writer.update("", {})
    outlet.receivers.heard("slow")
    outlet.acknowledge(writer, "fast", 3)
    assert (writer.unacknowledged, len(writer.retransmit(1, 3)[0])) == (3, 3), (
        "it has acknowledged nothing of this call"
    )
    outlet.acknowledge(writer, "slow", 2)
    assert (writer.unacknowledged, len(writer.retransmit(2, 3)[0])) == (1, 1)


async def test_the_host_of_its_parent_does_not_answer_for_a_call() -> None:
    outlet, writer = _begun("call~1")
    writer.acknowledge(PARENT, 1)
    assert writer.acknowledged_at == float("-inf")
    outlet.acknowledge(writer, "bridge", 1)
    assert writer.acknowledged_at > float("-inf")


async def test_a_receiver_that_is_gone_is_remembered_for_a_while_beside_another() -> None:
    receivers = Receivers()
    receivers.heard("gone")
    await asyncio.sleep(RECEIVER_GONE_S + 1)
    receivers.heard("there")
    assert (receivers.alive(), receivers.known()) == (["there"], ["gone", "there"])
    await asyncio.sleep(RECEIVER_FORGOTTEN_S - RECEIVER_GONE_S)
    receivers.heard("there")
    assert receivers.known() == ["there"]
    await asyncio.sleep(2 * RECEIVER_FORGOTTEN_S)
    assert receivers.known() == ["there"], "the only one may come back at any time"


async def test_an_ended_call_is_let_go_of_when_who_lacks_its_end_is_forgotten() -> None:
    bus = create_bus("memq://")
    await bus.open()
    publisher = ToolStreamPublisher(bus)
    publisher.start()

    async def acknowledge(receiver: str, call_id: str) -> None:
        ack = ToolStreamRequest(receiver=receiver, kind=ACK, call_id=call_id, from_seq=1, to_seq=9)
        bus.publish(REQUESTS, encode(ack))
        await asyncio.sleep(0)

    for call_id in ("other", "first", "second"):
        writer = publisher.begin(call_id, module="m", skill="s", caller="c", text="", data={})
        if call_id != "other":
            writer.close(Outcome.COMPLETED, "", {})
    await acknowledge("gone", "other")
    await acknowledge("there", "first")
    await asyncio.sleep(RECEIVER_FORGOTTEN_S + 1)
    assert publisher.heartbeat_calls("m") == [("other", 1), ("first", 2), ("second", 2)]
    await acknowledge("there", "second")
    assert publisher.heartbeat_calls("m") == [("other", 1)]
    publisher.stop()
    await bus.close()


async def test_what_is_asked_for_is_sent_as_far_as_it_is_kept_and_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "_RESEND_BYTES_PER_S", 1000)
    bus = create_bus("memq://")
    await bus.open()
    publisher = ToolStreamPublisher(bus, PublisherLimits(history=3))
    publisher.start()
    writer = publisher.begin("call", module="m", skill="s", caller="c", text="", data={})
    for _ in range(5):
        await writer.update("x" * 300, {})
    sent: list[int] = []
    answers: list[tuple[int, int]] = []
    bus.subscribe(EVENTS, lambda channel, data: sent.append(unpack_event(data).seq))

    def note(channel: str, data: bytes) -> None:
        request = decode(ToolStreamRequest, data)
        if request.kind == GONE:
            answers.append((request.from_seq, request.to_seq))

    bus.subscribe(REQUESTS, note)
    bus.publish(REQUESTS, encode(ToolStreamRequest(receiver="r", kind=NACK, call_id="call", from_seq=1, to_seq=6)))
    await asyncio.sleep(0.01)
    assert answers == [(2, 3)]
    assert sent == [1, 4, 5], "what is too much is asked for again"
    publisher.stop()
    await bus.close()
