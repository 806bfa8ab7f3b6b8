"""Publisher and receiver over a bus that loses, doubles and reorders."""

from __future__ import annotations

import asyncio
import random

import pytest

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.errors import SkillError, StreamClosedError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamEvent, ToolStreamRequest
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import EventType, Outcome, ToolEvent
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.channels import EVENTS, REQUESTS, STATUS
from dimos_streams.tool_stream.receiving import received_calls
from dimos_streams.tool_stream.sending.call_writer import PublisherLimits
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher
from dimos_streams.tool_stream.sending.receivers import RECEIVER_GONE_S
from dimos_streams.tool_stream.signature import signed
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.helpers import until
from tests.tool_stream.ends import bus_and_ends


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.parametrize("seed", range(20))
async def test_everything_arrives_once_in_order_through_loss_and_restarts(seed: int) -> None:
    faults = Faults(loss=0.2, duplication=0.1, delay_s=(0.0005, 0.02))
    rng = random.Random(seed)
    async with await bus_and_ends(faults, seed) as ends:

        async def talk(call_id: str, count: int) -> None:
            writer = ends.begin(call_id)
            for number in range(count):
                await writer.update(f"{number}", {})
                if rng.random() < 0.1:
                    await asyncio.sleep(rng.random() * 0.3)
            writer.close(Outcome.COMPLETED, "", {"result": None})

        counts = {f"call-{n}": rng.randint(0, 400) for n in range(4)}
        talking = [asyncio.create_task(talk(call_id, count)) for call_id, count in counts.items()]
        for _ in range(3):
            await asyncio.sleep(rng.random())
            ends.restart_receiver()
        await asyncio.gather(*talking)
        for call_id, count in counts.items():
            events = await ends.until_closed(call_id)
            assert [event.seq for event in events] == list(range(1, count + 3))
            assert [event.text for event in events[1:-1]] == [str(n) for n in range(count)]
        assert ends.sender_bus.counts().lost > 0


@pytest.mark.virtual_time
async def test_a_lost_last_event_is_noticed_by_the_heartbeat() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(1)
        with ends.losing_events():
            writer.close(Outcome.COMPLETED, "the end", {})
            await asyncio.sleep(0.1)
        events = await ends.until_closed("call")
        assert events[-1].text == "the end"
        await asyncio.sleep(0.5)
        assert ends.publisher.heartbeat_calls("m") == []


@pytest.mark.virtual_time
async def test_all_that_is_missing_is_asked_for_at_once() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        for number in range(200):
            ends.sender_bus.faults = Faults(loss=number % 2, affects=lambda channel: channel == EVENTS)
            await writer.update(str(number), {})
        ends.sender_bus.faults = Faults()
        began = clock.monotonic()
        writer.close(Outcome.COMPLETED, "", {})
        await ends.until_closed("call")
        assert ends.receiver.statistics().nacks >= 100
        assert clock.monotonic() - began < 0.1


@pytest.mark.virtual_time
async def test_a_publisher_that_leaves_waits_until_all_has_come_but_for_nobody_who_is_gone() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:

        async def waited_s() -> float:
            began = clock.monotonic()
            await ends.publisher.drain(0.5)
            return clock.monotonic() - began

        writer = ends.begin("call")
        assert await waited_s() == 0.0, "nobody has acknowledged anything yet"
        await asyncio.sleep(0.5)
        assert await waited_s() == 0.0, "what has not ended is not waited for"
        with ends.losing_events():
            await writer.update("lost at first", {})
        writer.close(Outcome.CANCELLED, "", {})
        assert 0.0 < await waited_s() < 0.2
        assert [event.seq for event in ends.delivered["call"]] == [1, 2, 3]
        ends.receiver_bus.partitioned = True
        ends.begin("next").close(Outcome.COMPLETED, "", {})
        assert await waited_s() == pytest.approx(0.5)
        await asyncio.sleep(RECEIVER_GONE_S)
        assert await waited_s() == 0.0


@pytest.mark.virtual_time
async def test_history_used_up_is_an_explicit_gap() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.receiver.stop()
        ends.publisher.limits = PublisherLimits(history=10)
        writer = ends.begin("call")
        for number in range(50):
            await writer.update(str(number), {})
        began = clock.monotonic()
        ends.restart_receiver()
        writer.close(Outcome.COMPLETED, "", {})
        events = await ends.until_closed("call")
        assert clock.monotonic() - began < 0.5, "what is gone is not asked for again and again"
        assert events[0].type == "open"
        assert events[1].type == "gap"
        assert events[1].data == {"from_seq": 2, "to_seq": 42}
        assert [event.seq for event in events[2:]] == list(range(43, 53))


@pytest.mark.virtual_time
async def test_that_events_are_gone_is_believed_of_the_instance_that_was_asked() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.publisher.instance = "own"
        writer = ends.begin("call")
        await asyncio.sleep(0.1)
        with ends.losing_events():
            await writer.update("lost at first", {})
        await writer.update("third", {})
        for receiver in ("receiver", signed("receiver", "other"), signed("second", "own")):
            forged = ToolStreamRequest(kind="gone", call_id="call", receiver=receiver, from_seq=2, to_seq=2)
            ends.sender_bus.publish(REQUESTS, encode(forged))
        writer.close(Outcome.COMPLETED, "", {})
        events = await ends.until_closed("call")
        assert [(event.seq, event.type) for event in events] == [
            (1, "open"), (2, "update"), (3, "update"), (4, "close"),
        ]  # fmt: skip


@pytest.mark.virtual_time
async def test_what_nobody_can_send_again_becomes_a_gap_within_a_bound() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        event = ToolEvent(
            utime=1, call_id="orphan", seq=3, type="update", module="m", skill="s", caller="c", text="third"
        )
        ends.sender_bus.publish(EVENTS, pack_event(event))
        await asyncio.sleep(3)
        assert [(e.type, e.seq) for e in ends.delivered["orphan"]] == [("gap", 2), ("update", 3)]


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_progress_thins_out_and_updates_wait_while_the_receiver_is_behind() -> None:
    async with await bus_and_ends(Faults(delay_s=(0.1, 0.1)), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(1)
        for number in range(10_000):
            writer.progress(str(number), {})
        assert writer.last_seq <= ends.publisher.limits.window + 1
        began = clock.monotonic()
        await writer.update("after", {})
        assert clock.monotonic() - began < 0.3, "it waits for the acknowledgement, and no longer"
        writer.close(Outcome.COMPLETED, "", {})
        events = await ends.until_closed("call")
        progress = [event for event in events if event.type == "progress"]
        assert progress[-1].text == "9999"
        assert sum(event.data.get("coalesced", 1) for event in progress) == 10_000


@pytest.mark.virtual_time
async def test_a_close_comes_behind_the_progress_that_was_kept_back() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(0.5)
        ends.receiver_bus.partitioned = True
        ends.publisher.limits = PublisherLimits(window=10)
        for number in range(100):
            writer.progress(str(number), {})
        writer.close(Outcome.COMPLETED, "the end", {})
        ends.receiver_bus.partitioned = False
        events = await ends.until_closed("call")
        assert [event.text for event in events[-2:]] == ["99", "the end"]
        assert events[-2].data["coalesced"] == 100 - (len(events) - 3)


@pytest.mark.virtual_time
async def test_progress_that_was_kept_back_for_a_receiver_that_left_comes_before_what_is_newer() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(0.5)
        ends.receiver_bus.partitioned = True
        ends.publisher.limits = PublisherLimits(window=10)
        for number in range(100):
            writer.progress(str(number), {})
        await asyncio.sleep(RECEIVER_GONE_S + 1)
        ends.publisher.limits = PublisherLimits()
        writer.progress("newer", {})
        ends.receiver_bus.partitioned = False
        writer.close(Outcome.COMPLETED, "the end", {})
        events = await ends.until_closed("call")
        assert [event.text for event in events[-3:]] == ["99", "newer", "the end"]


@pytest.mark.virtual_time
async def test_what_every_receiver_has_is_let_go_of() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        for number in range(100):
            await writer.update(str(number), {})
        await until(lambda: not writer.unacknowledged)
        assert writer.retransmit(2, 101) == ([], (2, 101))
        assert len(writer.retransmit(1, 1)[0]) == 1, "the open is always kept"


@pytest.mark.virtual_time
async def test_a_receiver_acknowledges_many_events_at_once() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        requests: list[bytes] = []
        ends.receiver_bus.subscribe(REQUESTS, lambda _, data: requests.append(data))
        writer = ends.begin("call")
        for number in range(1000):
            await writer.update(str(number), {})
            await asyncio.sleep(0.001)
        assert {decode(ToolStreamRequest, data).kind for data in requests} == {"ack"}
        assert len(requests) < 200


@pytest.mark.virtual_time
async def test_damaged_requests_are_counted_and_harmless() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.sender_bus.publish(REQUESTS, b"no request")
        ends.begin("call").close(Outcome.COMPLETED, "fine", {})
        await ends.until_closed("call")
        assert ends.receiver.statistics().malformed == 1
        assert [bus.statistics().errors for bus in (ends.sender_bus, ends.receiver_bus)] == [0, 0]


@pytest.mark.virtual_time
async def test_a_call_that_has_ended_says_nothing_more() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        writer.close(Outcome.COMPLETED, "the end", {})
        writer.close(Outcome.FAILED, "late", {})
        with pytest.raises(StreamClosedError, match="progress was sent on call call of 's', which is closed"):
            writer.progress("late", {})
        with pytest.raises(StreamClosedError, match="an update was sent on call call of 's', which is closed"):
            await writer.update("late", {})
        assert [event.text for event in await ends.until_closed("call")] == ["", "the end"]
        assert writer.last_seq == 2


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_progress_that_can_not_be_sent_is_refused_at_once_also_while_it_is_kept_back() -> None:
    async with await bus_and_ends(Faults(delay_s=(0.1, 0.1)), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(1)
        for number in range(2 * PublisherLimits().window):
            writer.progress(str(number), {})
        with pytest.raises(SkillError, match="not JSON: Unable to serialize unknown type"):
            writer.progress("bad", {"image": object()})
        writer.close(Outcome.COMPLETED, "", {})
        events = await ends.until_closed("call")
        assert events[-2].text == str(2 * PublisherLimits().window - 1)


@pytest.mark.virtual_time
async def test_an_instance_that_does_not_speak_for_its_module_is_heard_on_its_own_calls() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.publisher.instance = "own"
        writer = ends.begin("call")
        await asyncio.sleep(0.1)
        with ends.losing_events():
            await writer.update("lost at first", {})
        for instance in ("other", "own"):
            status = ModuleStatus(module="m", instance=instance, call_ids=["unknown", "call"], last_seqs=[5, 2])
            ends.receiver.on_status(status, active=False)
            await asyncio.sleep(0.1)
            assert ends.receiver.statistics().nacks == (1 if instance == "own" else 0)
        assert [event.seq for event in ends.delivered["call"]] == [1, 2]
        await asyncio.sleep(5.0)
        assert ends.delivered["unknown"] == []


@pytest.mark.virtual_time
async def test_what_came_behind_a_close_takes_no_room_from_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_calls, "ALL_PENDING_BYTES", 1000)
    async with await bus_and_ends(Faults(), 1) as ends:

        def send(call_id: str, *events: tuple[int, EventType]) -> None:
            for seq, type in events:
                data = {"outcome": "completed", "of": "x" * 600}
                event = ToolEvent(
                    utime=1,
                    call_id=call_id,
                    seq=seq,
                    type=type,
                    module="m",
                    skill="s",
                    caller="c",
                    text="",
                    data=data,
                )
                ends.sender_bus.publish(EVENTS, pack_event(event))

        send("ended", (1, "open"), (3, "update"), (2, "close"))
        await ends.until_closed("ended")
        send("other", (1, "open"), (3, "close"), (2, "update"))
        assert [event.seq for event in await ends.until_closed("other")] == [1, 2, 3]
        assert ends.receiver.statistics().nacks == 0, "nothing had to be sent again"


@pytest.mark.virtual_time
async def test_a_publisher_that_is_stopped_hears_nothing_more() -> None:
    bus = create_bus("memq://")
    await bus.open()
    asked: list[str] = []
    publisher = ToolStreamPublisher(bus, on_describe=lambda: asked.append("describe"))
    publisher.stop()
    publisher.start()
    for _ in range(2):
        bus.publish(REQUESTS, encode(ToolStreamRequest(kind="describe")))
        await asyncio.sleep(0.01)
        assert asked == ["describe"]
        publisher.stop()
        publisher.stop()
    await bus.close()


@pytest.mark.virtual_time
async def test_a_directory_that_is_stopped_hears_nothing_more() -> None:
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.stop()
    directory.start()
    bus.publish(STATUS, encode(ModuleStatus(module="one", instance="1", health="ok")))
    await until(directory.modules)
    directory.stop()
    directory.stop()
    bus.publish(STATUS, encode(ModuleStatus(module="two", instance="2", health="ok")))
    await asyncio.sleep(0.1)
    assert [module.name for module in directory.modules()] == ["one"]
    await bus.close()


@pytest.mark.virtual_time
async def test_damaged_events_are_counted_and_harmless() -> None:
    rng = random.Random(5)
    async with await bus_and_ends(Faults(), 1) as ends:
        good = encode(ToolStreamEvent(call_id="x", seq=1, type="open", data_json="{}"))
        for _ in range(3000):
            bad = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                bad[rng.randrange(len(bad))] = rng.randrange(256)
            ends.sender_bus.publish(EVENTS, bytes(bad[: rng.randint(0, len(bad))]))
        writer = ends.begin("call")
        writer.close(Outcome.COMPLETED, "fine", {})
        assert (await ends.until_closed("call"))[-1].text == "fine"
        assert ends.receiver.statistics().malformed > 2000
        assert ends.receiver_bus.statistics().errors == 0


@pytest.mark.virtual_time
async def test_an_event_that_is_none_is_named_by_its_call_and_with_what_would_be_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        await until(lambda: ends.receiver.statistics().delivered)
        odd = ToolStreamEvent(call_id="call", seq=2, type="close", module="m", data_json='{"outcome": "done"}')
        ends.sender_bus.publish(EVENTS, encode(odd))
        writer.close(Outcome.COMPLETED, "fine", {})
        await ends.until_closed("call")
    [line] = caplog.messages
    assert line.startswith("skipped an event of module 'm', call call: ")
    assert "outcome is 'done'; valid: completed, failed, cancelled, timed_out, lost, rejected" in line
