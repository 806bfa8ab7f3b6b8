"""Several receivers on one bus, and what a publisher keeps for whom."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ToolStreamRequest
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import REQUESTS
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.sending.call_writer import PublisherLimits
from dimos_streams.tool_stream.sending.history import EventHistory
from dimos_streams.tool_stream.sending.receivers import RECEIVER_FORGOTTEN_S, RECEIVER_GONE_S
from tests.bridge.scene import SimulatedProcess, Worker, scene
from tests.helpers import anybody, until
from tests.tool_stream.ends import Ends, bus_and_ends


def second_receiver(ends: Ends, delivered: list[int]) -> ToolStreamReceiver:
    """Another receiver on the same bus, without faults."""
    receiver = ToolStreamReceiver(
        ends.sender_bus,
        lambda events: delivered.extend(event.seq for event in events),
        may_open=anybody,
        name="second",
    )
    receiver.start()
    return receiver


@pytest.mark.virtual_time
async def test_what_one_receiver_has_is_kept_for_the_other() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        delivered: list[int] = []
        second = second_receiver(ends, delivered)
        writer = ends.begin("call")
        await asyncio.sleep(0.5)
        ends.receiver_bus.partitioned = True
        for number in range(100):
            await writer.update(str(number), {})
        writer.close(Outcome.COMPLETED, "", {})
        await until(lambda: len(delivered) == 102)
        await asyncio.sleep(RECEIVER_GONE_S + 1)
        ends.receiver_bus.partitioned = False
        events = await ends.until_closed("call")
        assert [event.seq for event in events] == list(range(1, 103))
        await asyncio.sleep(1)
        assert ends.publisher.heartbeat_calls("m") == []
        second.stop()


@pytest.mark.virtual_time
@pytest.mark.parametrize("name", ["receiver", "forged"])
async def test_who_has_read_nothing_acknowledges_nothing_for_a_receiver_behind_a_cut(name: str) -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        ends.publisher.instance = "mine"
        writer = ends.begin("call")
        await asyncio.sleep(0.5)
        ends.receiver_bus.partitioned = True
        writer.close(Outcome.COMPLETED, "", {})
        await asyncio.sleep(5 * RECEIVER_GONE_S)
        forged = ToolStreamRequest(receiver=name, kind="ack", call_id="call", from_seq=1, to_seq=2)
        ends.sender_bus.publish(REQUESTS, encode(forged))
        await asyncio.sleep(0.1)
        assert ends.publisher.heartbeat_calls("m") == [("call", 2)]
        ends.receiver_bus.partitioned = False
        assert [event.type for event in await ends.until_closed("call")] == ["open", "close"]


@pytest.mark.virtual_time
async def test_a_receiver_that_stays_away_is_forgotten_beside_another() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        delivered: list[int] = []
        second = second_receiver(ends, delivered)
        ends.begin("first").close(Outcome.COMPLETED, "", {})
        await asyncio.sleep(0.5)
        ends.receiver_bus.partitioned = True
        ends.begin("call").close(Outcome.COMPLETED, "", {})
        await asyncio.sleep(1)
        assert ends.publisher.heartbeat_calls("m") == [("call", 2)]
        await asyncio.sleep(RECEIVER_FORGOTTEN_S)
        ends.begin("next").close(Outcome.COMPLETED, "", {})
        await asyncio.sleep(1)
        assert ends.publisher.heartbeat_calls("m") == []
        second.stop()


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_skill_that_never_waits_is_held_back_by_its_receiver() -> None:
    async with await bus_and_ends(Faults(loss=0.2, delay_s=(0.0005, 0.001)), 1) as ends:
        writer = ends.begin("call")
        for number in range(6000):  # more than the history holds
            await writer.update(str(number), {})
        writer.close(Outcome.COMPLETED, "", {})
        events = await ends.until_closed("call")
        assert [event.seq for event in events] == list(range(1, 6003))
        assert "gap" not in {event.type for event in events}


@pytest.mark.virtual_time
async def test_a_closed_call_is_let_go_of_though_its_publisher_goes_on() -> None:
    async with await bus_and_ends(Faults(), 1) as ends:
        writer = ends.begin("call")
        await asyncio.sleep(0.1)
        ends.receiver.finish("call")
        for number in range(2 * PublisherLimits().window):
            await writer.update(str(number), {})
        writer.close(Outcome.CANCELLED, "", {})
        await asyncio.sleep(0.5)
        assert ends.publisher.heartbeat_calls("m") == []


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_heartbeats_that_are_lost_come_again_before_a_call_is_given_up() -> None:
    """40 % are lost, for a minute."""
    async with scene() as world:
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="agent")
        await asyncio.sleep(1)
        world.processes[1].bus.faults = Faults(loss=0.4)
        await asyncio.sleep(60)
        assert (await world.broker.view(call_id)).state == "open"


@pytest.mark.virtual_time
async def test_a_call_whose_lease_was_given_away_ends() -> None:
    """The journal is lost, and another module is heard first."""
    async with scene() as world:
        await world.add(Worker(name="other"))
        old = await world.broker.call("follow", {"description": "ann"}, caller="agent")
        await asyncio.sleep(1)
        held_by = next(process for process in world.processes[1:] if runs(process, old))
        await world.kill_bridge()
        held_by.bus.partitioned = True
        await world.start_bridge()
        await world.offered("follow")
        new = await world.broker.call("follow", {"description": "bob"}, caller="agent")
        await asyncio.sleep(0.3)
        held_by.bus.partitioned = False
        await until(lambda: world.broker.ledger.calls.get(old) is not None)
        assert await world.broker.wait(old, "close", 5.0)
        view = await world.broker.view(old)
        assert view.outcome is Outcome.CANCELLED
        assert new in view.text
        assert (await world.broker.view(new)).state == "open"


def runs(process: SimulatedProcess, call_id: str) -> bool:
    return any(isinstance(module, Worker) and call_id in module.running for module in process.modules.values())


def test_history() -> None:
    history = EventHistory(max_events=3, max_bytes=1000)
    for number in range(1, 7):
        history.append(b"%d" % number)
    assert (history.first_kept, history.last_seq, history.newest) == (4, 6, b"6")
    assert history.range(1, 6, 64) == ([b"1", b"4", b"5", b"6"], (2, 3))
    assert history.range(5, 6, 1) == ([b"5"], None)
    assert history.range(2, 3, 64) == ([], (2, 3))
    assert history.range(1, 1, 64) == ([b"1"], None)
    history.forget(6)
    assert history.range(1, 6, 64) == ([b"1"], (2, 6))
    assert history.newest == b"1"
    history.append(b"x" * 2000)
    assert (history.first_kept, history.newest) == (7, b"x" * 2000)
    history.append(b"8")
    assert history.range(7, 8, 64) == ([b"8"], (7, 7))
