"""What a publisher keeps and what its calls wait for while nobody takes their events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from dimos_streams import clock
from dimos_streams.errors import SkillError, StreamClosedError
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.bounds import MAX_PAYLOAD
from dimos_streams.tool_stream.protocol.channels import PARENT
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.sending.call_writer import RECEIVER_ANSWERS_S, CallWriter, PublisherLimits
from dimos_streams.tool_stream.sending.receivers import (
    MAX_RECEIVERS,
    RECEIVER_FORGOTTEN_S,
    RECEIVER_GONE_S,
    Receivers,
)
from tests.helpers import anybody, until
from tests.tool_stream.ends import Ends, bus_and_ends


@pytest.mark.virtual_time
async def test_where_nobody_receives_a_full_window_waits_once() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.receiver.stop()
        ends.heart.cancel()
        ends.publisher.limits = PublisherLimits(window=10)
        writer = ends.begin("call")
        began = clock.monotonic()
        for number in range(50):
            await writer.update(str(number), {})
            assert clock.monotonic() - began == pytest.approx(RECEIVER_ANSWERS_S if number > 8 else 0.0)


@pytest.mark.virtual_time
async def test_an_update_that_waits_is_refused_as_soon_as_its_call_ends() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(0.5)
        ends.receiver_bus.partitioned = True
        ends.publisher.limits = PublisherLimits(window=10)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                while True:
                    await writer.update("fills the window", {})
        assert writer.last_seq == 11
        waiting = asyncio.create_task(writer.update("late", {}))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        writer.close(Outcome.LOST, "", {})
        await asyncio.sleep(0.01)
        assert isinstance(waiting.exception(), StreamClosedError)
        assert writer.last_seq == 12


@pytest.mark.virtual_time
@pytest.mark.parametrize("comes_back", [True, False])
async def test_a_child_is_held_back_by_its_parent_as_long_as_that_is_there(comes_back: bool) -> None:
    """The bridge, which the other end is, has everything at once."""
    async with await bus_and_ends(Faults(), 1) as ends:
        busy = False

        def take(events: list[ToolEvent]) -> None:
            if busy:
                raise OSError("no room")

        parent = ToolStreamReceiver(ends.sender_bus, take, may_open=anybody, name=PARENT)
        parent.start()
        ends.publisher.limits = PublisherLimits(window=10)
        writer = ends.begin("parent~1")
        await asyncio.sleep(0.1)
        ends.heart.cancel()
        busy, began = True, clock.monotonic()
        while writer.last_seq < 11:
            await writer.update("fills the window", {})
        waiting = asyncio.create_task(writer.update("one more", {}))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        assert len(ends.delivered["parent~1"]) == 11
        busy = not comes_back
        await waiting
        assert clock.monotonic() - began == pytest.approx(0.5 if comes_back else RECEIVER_GONE_S, abs=0.2)
        parent.stop()


@pytest.mark.virtual_time
async def test_one_progress_that_was_kept_back_stands_for_itself() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(0.5)
        ends.receiver_bus.partitioned = True
        ends.publisher.limits = PublisherLimits(window=3)
        for kept_back in (1, 2, 1):
            while writer.last_seq < 4:
                writer.progress("goes out", {})
            last = writer.last_seq
            for number in range(kept_back):
                writer.progress("kept back", {"number": number})
            assert writer.last_seq == last
            ends.receiver_bus.partitioned = False
            await asyncio.sleep(0.5)
            assert writer.last_seq == last + 1
            event = ends.delivered["call"][-1]
            more = {"coalesced": kept_back} if kept_back > 1 else {}
            assert (event.text, event.data) == ("kept back", {"number": kept_back - 1, **more})
            ends.receiver_bus.partitioned = True
            for _ in range(3):
                writer.progress("goes out", {})


@asynccontextmanager
async def _window_full() -> AsyncIterator[tuple[Ends, CallWriter]]:
    """A call with a full window, whose receiver is cut off."""
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(0.5)
        ends.receiver_bus.partitioned = True
        ends.publisher.limits = PublisherLimits(window=3)
        while writer.last_seq < 4:
            writer.progress("goes out", {})
        yield ends, writer


@pytest.mark.virtual_time
@pytest.mark.parametrize("before", [0, 1, 2])
async def test_progress_that_cannot_be_sent_is_refused_though_the_window_is_full(before: int) -> None:
    async with _window_full() as (ends, writer):
        for number in range(before):
            writer.progress("kept back", {"number": number})
        for text, data in (("x" * MAX_PAYLOAD, {}), ("", {"blob": "x" * MAX_PAYLOAD}), ("", {"what": object()})):
            with pytest.raises(SkillError):
                writer.progress(text, data)
        with pytest.raises(SkillError):
            writer.progress(None, {})  # type: ignore[arg-type]
        writer.close(Outcome.COMPLETED, "done", {"result": None})
        assert writer.outcome is Outcome.COMPLETED
        ends.receiver_bus.partitioned = False
        kept_back = [event for event in await ends.until_closed("call") if event.text == "kept back"]
        more = {"coalesced": before} if before > 1 else {}
        assert [event.data for event in kept_back] == [{"number": before - 1, **more}] * bool(before)


@pytest.mark.virtual_time
async def test_progress_that_fits_is_kept_back_whatever_it_stands_for() -> None:
    async with _window_full() as (ends, writer):
        for _ in range(3):
            writer.progress("x" * (MAX_PAYLOAD - 2), {})
        ends.receiver_bus.partitioned = False
        await until(lambda: len(ends.delivered["call"]) == 5)
        event = ends.delivered["call"][-1]
        assert (len(event.text), event.data) == (MAX_PAYLOAD - 2, {})


@pytest.mark.virtual_time
async def test_progress_that_is_kept_back_is_sent_as_it_was_when_it_was_said() -> None:
    async with _window_full() as (ends, writer):
        places: list[object] = [1]
        writer.progress("kept back", {"places": places})
        said_at = clock.utime()
        await asyncio.sleep(0.1)
        places.append(object())
        waiting = asyncio.create_task(writer.update("an update", {}))
        await asyncio.sleep(0.1)
        ends.receiver_bus.partitioned = False
        await asyncio.wait_for(waiting, 1.0)
        await until(lambda: len(ends.delivered["call"]) == 6)
        progress, update = ends.delivered["call"][-2:]
        assert (progress.data, progress.utime, update.text) == ({"places": [1]}, said_at, "an update")


@pytest.mark.virtual_time
async def test_an_id_is_used_for_one_call() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.receiver.stop()
        writer = ends.begin("call")
        assert not ends.publisher.knows("other")
        for _ in ("open", "ended"):
            with pytest.raises(ValueError, match="call 'call' has begun already"):
                ends.begin("call")
            writer.close(Outcome.COMPLETED, "", {})
        assert ends.publisher.heartbeat_calls("m") == [("call", 2)]
        assert ends.publisher.heartbeat_calls("other") == []


@pytest.mark.virtual_time
async def test_of_ended_calls_that_nobody_acknowledges_the_newest_are_kept() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.receiver.stop()
        ends.publisher.limits = PublisherLimits(closed_calls=2)
        ends.begin("open")
        for call_id in ("first", "second", "third"):
            ends.begin(call_id).close(Outcome.COMPLETED, "", {})
        assert ends.publisher.heartbeat_calls("m") == [("open", 1), ("second", 2), ("third", 2)]


@pytest.mark.virtual_time
async def test_whether_somebody_has_answered_since() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        publisher = ends.publisher
        ends.receiver_bus.partitioned = True
        ends.begin("call")
        assert publisher.answered("m", clock.monotonic()), "nobody is there to answer"
        ends.receiver_bus.partitioned = False
        await asyncio.sleep(0.5)
        assert publisher.answered("m", clock.monotonic() - 0.3)
        assert not publisher.answered("m", clock.monotonic() + 0.1)
        assert publisher.answered("other", clock.monotonic() + 0.1), "it has no call"
        ends.receiver_bus.partitioned = True
        await asyncio.sleep(RECEIVER_GONE_S - 0.5)
        assert not publisher.answered("m", clock.monotonic() - 0.3)
        await asyncio.sleep(0.5)
        assert publisher.answered("m", clock.monotonic())


@pytest.mark.virtual_time
async def test_of_too_many_receivers_the_one_silent_for_longest_is_forgotten() -> None:
    receivers = Receivers()
    names = [f"receiver-{number}" for number in range(MAX_RECEIVERS)]
    for name in names:
        receivers.heard(name)
    await asyncio.sleep(RECEIVER_GONE_S / 2)
    receivers.heard(names[0])
    assert sorted(receivers.known()) == sorted(names)
    receivers.heard("new")
    assert sorted(receivers.known()) == sorted([names[0], *names[2:], "new"])
    await asyncio.sleep(RECEIVER_GONE_S / 2)
    assert receivers.alive() == [names[0], "new"]
    await asyncio.sleep(RECEIVER_FORGOTTEN_S - RECEIVER_GONE_S)
    assert len(receivers.known()) == MAX_RECEIVERS
    await asyncio.sleep(0.1)
    assert receivers.known() == [names[0], "new"]
    receivers.heard("new")
    await asyncio.sleep(2 * RECEIVER_FORGOTTEN_S)
    assert (receivers.known(), receivers.alive()) == (["new"], []), "one alone is never forgotten"
