"""Events, requests and heartbeats in the name of calls that are somebody else's, in virtual time."""

from __future__ import annotations

import asyncio
import json
import re
import time
import tracemalloc
from collections import Counter

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall, ToolStreamEvent, ToolStreamRequest
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import MAX_SEQ, Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, EVENTS, REQUESTS, STATUS
from dimos_streams.tool_stream.receiving.event_admission import NOTED_S
from dimos_streams.tool_stream.receiving.received_calls import ALL_PENDING_BYTES, MAX_CLOSED, MAX_NAMED, MAX_OPEN
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.wire.packing import EventPacker, pack_event
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.bridge.scene import scene
from tests.helpers import anybody, until
from tests.live.modules import Sleeper
from tests.tool_stream.liveness.test_instances import closed, two_walkers

pytestmark = pytest.mark.feature("F6")


def event(call_id: str, seq: int, type: str = "update", text: str = "forged", data: str = "{}") -> bytes:
    fields = {"utime": 1, "module": "walker", "skill": "walk", "caller": "test"}
    return encode(
        ToolStreamEvent(call_id=call_id, seq=seq, type=type, text=text, data_json=data, **fields)  # type: ignore[arg-type]
    )


async def journal_of(broker: Broker, call_id: str) -> list[ToolEvent]:
    found = []
    offset = await broker.offset()
    async for entry in broker.events(after=0):
        if entry.event.call_id == call_id:
            found.append(entry.event)
        if entry.offset == offset:
            break
    return found


@pytest.mark.virtual_time
@pytest.mark.parametrize("data", ["{}", '{"_instance": "forged"}', '{"_instance": ""}'])
@pytest.mark.parametrize("seq", [3, 4, 1000, MAX_SEQ])
async def test_nobody_else_writes_on_in_a_call(seq: int, data: str) -> None:
    async with two_walkers() as (broker, _, _):
        call_id = await broker.call("walk", {"seconds": 5.0}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        for _number in range(10):
            broker.bus.publish(EVENTS, event(call_id, seq, data=data))
            outcome = json.dumps({"outcome": "failed", **json.loads(data)})
            broker.bus.publish(EVENTS, event(call_id, seq, "close", data=outcome))
        view = await closed(broker, call_id)
        assert (view.outcome, view.text) == (Outcome.COMPLETED, "there")
        reported = await journal_of(broker, call_id)
        assert [(each.seq, each.type) for each in reported] == [(1, "open"), (2, "update"), (3, "close")]
        assert all("_instance" not in each.data for each in reported)
        assert broker.contradictions() == 20
        assert broker.receiver.statistics().nacks == 0


@pytest.mark.virtual_time
@pytest.mark.parametrize("data", [{}, {"_instance": "forged"}, {"_instance": "rival"}, {"outcome": "completed"}])
@pytest.mark.parametrize("seq", [1, 2, 500])
async def test_nobody_else_begins_a_call_whose_module_was_not_heard_yet(seq: int, data: dict[str, str]) -> None:
    async with scene() as world:
        broker, process = world.broker, world.processes[1]
        world.inner.publish(STATUS, encode(ModuleStatus(module="walker", instance="rival", skills_version="1")))
        process.bus.partitioned = True
        call_id = await broker.call("count", {"label": "real", "to": 3}, caller="test")
        for type in ("open", "update", "close"):
            world.inner.publish(EVENTS, event(call_id, seq, type, data=json.dumps({"outcome": "failed", **data})))
        await asyncio.sleep(0.5)
        assert broker.ledger.calls.open[0].state == "requested"
        process.bus.partitioned = False
        assert await broker.wait(call_id, "close", 5.0)
        reported = await journal_of(broker, call_id)
        assert [each.seq for each in reported] == [1, 2, 3, 4, 5]
        assert [each.text for each in reported[1:]] == ["real 1", "real 2", "real 3", "real"]
        assert broker.contradictions() == 3


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_who_writes_on_in_somebodys_call_is_named_in_the_bridges_health_for_a_while() -> None:
    async with scene() as world:
        broker = world.broker
        call_id = await broker.call("patrol", {}, caller="test")
        await until(lambda: broker.ledger.calls.open[0].state == "open")
        assert world.bridge.health == "ok"
        broker.bus.publish(EVENTS, event(call_id, 3, data='{"_instance": "forged"}'))

        def health() -> str:
            return next(view.health for view in broker.directory.modules() if view.name == "bridge")

        await until(lambda: f"call {call_id} is of instance" in health())
        assert "events of instance 'forged' in it are not believed" in health()
        await asyncio.sleep(NOTED_S + 10)
        assert health() == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("forged", ["forged", "5f-1-5ec4e7"])
def test_the_bridges_health_names_nobodys_instance_with_its_secret_end(forged: str) -> None:
    async def scenario() -> str:
        async with scene() as world:
            broker = world.broker
            call_id = await broker.call("patrol", {}, caller="test")
            await until(lambda: broker.ledger.calls.open[0].state == "open")
            broker.bus.publish(EVENTS, event(call_id, 3, data=json.dumps({"_instance": forged})))
            await until(lambda: world.bridge.health != "ok")
            return world.bridge.health

    health = asyncio.run(scenario())  # in virtual time instances have no secret end
    owner, other = re.findall(r"of instance '(.*?)'", health)
    assert re.fullmatch("[0-9a-f]+-[0-9a-f]+", owner)
    assert forged.startswith(other)
    assert "5ec4e7" not in health


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_another_instances_heartbeats_lose_no_call() -> None:
    async with two_walkers() as (broker, _, _):
        call_id = await broker.call("walk", {"seconds": 6.0}, caller="test")

        def forge(**more: object) -> None:
            status = ModuleStatus(module="walker", instance="forged", skills_version="9", **more)  # type: ignore[arg-type]
            broker.bus.publish(STATUS, encode(status))

        forge(call_ids=[call_id], last_seqs=[2**30])
        await broker.wait(call_id, "answer", 5.0)
        for _number in range(10):
            forge(call_ids=[call_id], last_seqs=[2**30])
            forge()
            await asyncio.sleep(0.3)
        assert (await closed(broker, call_id)).outcome is Outcome.COMPLETED
        assert [each.type for each in await journal_of(broker, call_id)] == ["open", "update", "close"]
        assert broker.contradictions() == 1


async def flood(bus: Bus, seconds: float) -> None:
    """Forge heartbeats in the name of the walker: many instances that come and go, and one that stays."""
    for number in range(round(seconds / 0.05)):
        for instance in (f"forged{number}", *("stays",) * 10, *(f"other{number}-{n}" for n in range(100))):
            bus.publish(STATUS, encode(ModuleStatus(module="walker", instance=instance, skills_version="9")))
        await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_forged_instances_lose_no_call_of_which_heartbeats_are_lost() -> None:
    """Of the real ones one in 1.4 s comes through, and that beside a flood of others."""
    async with two_walkers() as (broker, walker, _):
        await asyncio.sleep(2.0)
        call_id = await broker.call("walk", {"seconds": 8.0}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        forging = asyncio.create_task(flood(broker.bus, 9.0))
        for _number in range(5):
            walker.bus.faults = Faults(loss=1.0, affects=lambda channel: channel == STATUS)
            await asyncio.sleep(1.1)
            walker.bus.faults = Faults()
            await asyncio.sleep(0.3)
        view = await closed(broker, call_id)
        assert (view.outcome, view.text) == (Outcome.COMPLETED, "there")
        again = await closed(broker, await broker.call("walk", {"seconds": 0.1}, caller="test"))
        assert again.outcome is Outcome.COMPLETED
        forging.cancel()


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_a_call_whose_events_come_lives_whoever_else_beats() -> None:
    async with two_walkers() as (broker, walker, _):
        call_id = await broker.call("march", {"steps": 10}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        walker.bus.faults = Faults(loss=1.0, affects=lambda channel: channel == STATUS)
        forging = asyncio.create_task(flood(broker.bus, 7.0))
        view = await closed(broker, call_id)
        assert (view.outcome, view.text) == (Outcome.COMPLETED, "there")
        forging.cancel()


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_beside_forged_instances_a_real_restart_is_reported_in_time() -> None:
    async with two_walkers() as (broker, walker, _):
        call_id = await broker.call("walk", {"seconds": 60.0}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        forging = asyncio.create_task(flood(broker.bus, 3.0))
        await asyncio.sleep(0.7)
        died = clock.monotonic()
        walker.crash()
        await walker.start()
        view = await closed(broker, call_id)
        assert clock.monotonic() - died <= 2.0
        assert (view.outcome, view.text) == (Outcome.LOST, "module 'walker' was started again while the call ran")
        forging.cancel()


@pytest.mark.virtual_time
async def test_acknowledgements_of_somebody_who_reads_nothing_do_not_count() -> None:
    """What the bridge has not got is kept for it, and nobody else is waited for."""
    async with two_walkers() as (broker, _, _):
        call_id = await broker.call("walk", {"seconds": 1.0}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        await asyncio.sleep(0.1)
        fields = {"call_id": call_id, "from_seq": 1, "to_seq": 2**31 - 1}
        heard: list[ToolStreamEvent] = []
        for name in ["bridge", *(f"forged{n}" for n in range(20))]:
            for instance in ("", "@forged"):
                for kind in ("ack", "gone", "repair"):
                    request = ToolStreamRequest(receiver=f"{name}{instance}", kind=kind, **fields)  # type: ignore[arg-type]
                    broker.bus.publish(REQUESTS, encode(request))
        broker.bus.subscribe(EVENTS, lambda _, data: heard.append(decode(ToolStreamEvent, data)))
        await asyncio.sleep(0.5)
        assert heard == [], "nothing is sent again to them"
        view = await closed(broker, call_id)
        assert view.outcome is Outcome.COMPLETED
        assert [each.seq for each in await journal_of(broker, call_id)] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_an_event_that_no_publisher_sends_is_refused_at_the_door() -> None:
    async with two_walkers() as (broker, _, _):
        call_id = await broker.call("walk", {"seconds": 0.5}, caller="test")
        broker.bus.publish(EVENTS, event("large", 1, "open", text="x" * 60_000))
        broker.bus.publish(EVENTS, event("larger", 1, "open", text="x" * 20_000_000))
        assert (await closed(broker, call_id)).outcome is Outcome.COMPLETED
        assert broker.ledger.journal.state == "ok"
        assert broker.malformed()["events"] == 1
        assert [view.call_id for view in await broker.calls()] == [call_id]


@pytest.mark.virtual_time
@pytest.mark.slow
async def test_a_receivers_tables_are_bounded_and_what_is_forged_costs_little() -> None:
    bus: Bus = create_bus("memq://")
    await bus.open()
    delivered: list[ToolEvent] = []
    requests: list[bytes] = []
    receiver = ToolStreamReceiver(bus, delivered.extend, may_open=anybody)
    receiver.start()
    bus.subscribe(REQUESTS, lambda _, data: requests.append(data))
    began = time.perf_counter()
    for number in range(3000):
        ids = [f"claimed{number}-{n}" for n in range(100)]
        receiver.on_status(ModuleStatus(module="m", instance="1", call_ids=ids, last_seqs=[2**30] * 100))
    for number in range(MAX_OPEN + MAX_CLOSED):
        bus.publish(EVENTS, event(f"quiet{number}", 2**30))
        if number % 1000 == 0:
            await asyncio.sleep(0.01)
    for number in range(2, 1000):
        bus.publish(EVENTS, event("ahead", 2 * number, text="x" * 40_000))
        if number % 100 == 0:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    assert len(receiver._calls) <= MAX_OPEN + MAX_CLOSED + MAX_NAMED
    assert receiver._calls.pending_bytes <= ALL_PENDING_BYTES
    assert len(requests) < 40_000
    packer = EventPacker("real", "m", "s", "c", "mine")
    for seq in (1, 3, 2):
        bus.publish(EVENTS, packer.pack(1, seq, "update" if seq > 1 else "open", "", {}))
    await until(lambda: len([each for each in delivered if each.call_id == "real"]) == 3)
    assert time.perf_counter() - began < 10.0
    receiver.stop()
    await bus.close()


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_receiver_keeps_no_event_that_it_has_delivered() -> None:
    bus: Bus = create_bus("memq://")
    await bus.open()
    receiver = ToolStreamReceiver(bus, lambda events: None, may_open=anybody)
    receiver.start()
    tracemalloc.start()
    for number in range(600):
        bus.publish(EVENTS, event(f"call{number}", 1, "open", text=f"{number}" + "x" * 40_000))
        await asyncio.sleep(0.01)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert receiver.statistics().delivered == 600
    assert grown < 5e6
    receiver.stop()
    await bus.close()


@pytest.mark.virtual_time
@pytest.mark.slow
async def test_calls_that_nobody_has_begun_are_no_flood_of_messages() -> None:
    async with two_walkers() as (broker, _, _):
        reported: Counter[str] = Counter()
        for channel in (REQUESTS, CANCELS, EVENTS):
            broker.bus.subscribe(channel, lambda channel, data: reported.update([channel]))
        forged = 0
        for number in range(500):
            broker.bus.publish(EVENTS, event(f"forged{number}", 5))
            forged += 1
            await asyncio.sleep(0.01)
        call_id = await broker.call("walk", {"seconds": 1.0}, caller="test")
        assert (await closed(broker, call_id)).outcome is Outcome.COMPLETED
        await asyncio.sleep(10.0)
        # 16 s, each of them with at most 20 requests, 100 acknowledgements, 10 words on outcomes, and 5 calls that
        # are closed; and what is allowed at once.
        assert reported[REQUESTS] < 1500
        assert reported[CANCELS] < 180
        assert reported[EVENTS] - forged < 600


@pytest.mark.virtual_time
async def test_what_cant_be_its_calls_own_is_not_even_read() -> None:
    async with two_walkers() as (broker, _, _):
        call_id = await broker.call("walk", {"seconds": 1.0}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        damaged = event(call_id, 3, text="x" * 50_000, data="{")
        for _number in range(300):
            broker.bus.publish(EVENTS, damaged)
            await asyncio.sleep(0)
        assert (await closed(broker, call_id)).outcome is Outcome.COMPLETED
        assert broker.malformed()["events"] <= 40, "a few are read, to find out who sends them"
        assert broker.contradictions() >= 260


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_events_of_calls_that_nobody_knows_keep_no_other_event_from_being_read() -> None:
    async with two_walkers() as (broker, _, _):
        call_id = await broker.call("walk", {"seconds": 1.0}, caller="test")
        for number in range(5000):
            broker.bus.publish(EVENTS, event(f"forged{number}", 2, data="{"))
            if number % 50 == 0:
                await asyncio.sleep(0)
        view = await closed(broker, call_id)
        assert (view.outcome, view.last_seq) == (Outcome.COMPLETED, 3)
        assert 1000 < broker.malformed()["events"] < 2500


@pytest.mark.virtual_time
async def test_what_came_too_early_from_somebody_else_is_given_up_when_the_call_is_known() -> None:
    bus: Bus = create_bus("memq://")
    await bus.open()
    delivered: list[ToolEvent] = []
    receiver = ToolStreamReceiver(bus, delivered.extend, may_open=anybody)
    receiver.start()
    packer = EventPacker("call", "m", "s", "c", "mine")
    bus.publish(EVENTS, event("call", 2))
    bus.publish(EVENTS, event("call", 3, data='{"_instance": "other"}'))
    bus.publish(EVENTS, packer.pack(1, 3, "update", "third", {}))
    await asyncio.sleep(0)
    for seq, type, text in ((1, "open", "first"), (2, "update", "second"), (3, "update", "third")):
        bus.publish(EVENTS, packer.pack(1, seq, type, text, {"n": seq}))  # type: ignore[arg-type]
    await asyncio.sleep(0.1)
    assert [each.text for each in delivered] == ["first", "second", "third"]
    assert receiver.statistics().refused == 2
    receiver.stop()
    await bus.close()


def test_an_instance_goes_with_an_event_and_is_no_part_of_its_data() -> None:
    for data in ({}, {"a": 1}, {"_instance": "own"}):
        packed = EventPacker("call", "m", "s", "c", 'in"st').pack(1, 1, "open", "text", data)
        found = unpack_event(packed)
        assert found.instance == 'in"st'
        assert found.data == {name: value for name, value in data.items() if name != "_instance"}
        assert pack_event(found) == packed or "_instance" in data
    with pytest.raises(MessageError, match="its instance is"):
        unpack_event(event("call", 1, data='{"_instance": 5}'))
    with pytest.raises(MessageError, match="bytes; 60000 are possible"):
        unpack_event(event("call", 1, text="x" * 60_000))


@pytest.mark.virtual_time
@pytest.mark.feature("F6")
async def test_events_of_whoever_writes_json_with_blanks_are_as_many_as_theirs() -> None:
    bus: Bus = create_bus("memq://")
    await bus.open()
    delivered: list[ToolEvent] = []
    receiver = ToolStreamReceiver(bus, delivered.extend, may_open=anybody)
    receiver.start()
    for seq in range(1, 301):
        said = json.dumps({"n": seq, "_instance": "mine"})
        fields = {"type": "open" if seq == 1 else "update", "text": str(seq), "data": said}
        bus.publish(EVENTS, event("call", seq, **fields))
    await asyncio.sleep(0.1)
    assert [each.data["n"] for each in delivered] == list(range(1, 301))
    assert receiver.statistics().refused == 0
    receiver.stop()
    await bus.close()


@pytest.mark.virtual_time
@pytest.mark.feature("A5")
async def test_a_flood_of_calls_that_are_rejected_is_no_flood_of_events() -> None:
    bus = create_bus("memq://")
    await bus.open()
    heard: list[ToolStreamEvent] = []
    statuses: list[bytes] = []
    bus.subscribe(EVENTS, lambda _, data: heard.append(decode(ToolStreamEvent, data)))
    bus.subscribe(STATUS, lambda _, data: statuses.append(data))
    host = ModuleHost(bus)
    await host.start(Sleeper(name="sleeper"), {})
    for number in range(3000):
        bus.publish(CALLS, encode(SkillCall(call_id=f"forged{number}", module="sleeper", skill="no such")))
        bus.publish(REQUESTS, encode(ToolStreamRequest(kind="describe")))
    bus.publish(CALLS, encode(SkillCall(call_id="real", module="sleeper", skill="cancelled_calls")))
    await until(lambda: any(each.call_id == "real" and each.type == "close" for each in heard))
    await asyncio.sleep(1.0)
    assert len({each.call_id for each in heard}) <= 300
    assert len(statuses) <= 30
    await host.stop()
    await bus.close()


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "types", [["open"], ["progress", "update"], ["open", "update"], ["update", "update", "update"]]
)
async def test_a_rejected_call_whose_first_events_are_forged_is_closed_by_its_module(types: list[str]) -> None:
    async with two_walkers() as (broker, _, _):
        for seq, type in enumerate(types, 1):
            broker.bus.publish(EVENTS, event("begun-without-the-bridge", seq, type))
        call = SkillCall(call_id="begun-without-the-bridge", module="walker", skill="fly", caller="test")
        broker.bus.publish(CALLS, encode(call))
        await asyncio.sleep(1.0)
        assert not await broker.calls(open_only=True)
        reported = await journal_of(broker, call.call_id)
        assert [(each.seq, each.type) for each in reported] == [*enumerate([*types, "close"], 1)]
        assert reported[-1].outcome is Outcome.REJECTED


@pytest.mark.virtual_time
@pytest.mark.parametrize("types", [["open"], ["progress", "update"], ["update", "update", "open", "update"]])
async def test_a_rejected_call_whose_end_was_not_heard_is_closed_as_long_as_its_module_knows_it(
    types: list[str],
) -> None:
    lost = {""}
    async with two_walkers(Faults(loss=1.0, affects=lost.__contains__)) as (broker, _, _):
        call = SkillCall(call_id="begun-without-the-bridge", module="walker", skill="fly", caller="test")
        lost.add(EVENTS)
        broker.bus.publish(CALLS, encode(call))
        await asyncio.sleep(0.01)
        # Its module keeps the call for this receiver, and names it.
        reads = ToolStreamRequest(receiver="forged", kind="ack", call_id=call.call_id, from_seq=1, to_seq=1)
        broker.bus.publish(REQUESTS, encode(reads))
        for seq, type in enumerate(types, 1):
            broker.bus.publish(EVENTS, event(call.call_id, seq, type))
        await asyncio.sleep(0.01)
        lost.remove(EVENTS)
        await asyncio.sleep(5.0)
        assert not await broker.calls(open_only=True)
        reported = await journal_of(broker, call.call_id)
        assert (reported[-1].type, reported[-1].outcome) == ("close", Outcome.REJECTED)
