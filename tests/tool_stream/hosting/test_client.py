"""How a skill begins other calls over the bus: whom it waits for, and what becomes of a call that it drops."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import (
    BusError,
    CallRejectedError,
    SkillArgumentError,
    SkillError,
    SkillRunError,
    UnknownSkillError,
)
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall, SkillCancel, ToolStreamRequest
from dimos_streams.tool_stream.calling import children
from dimos_streams.tool_stream.calling.children import ChildStream, ChildStreams
from dimos_streams.tool_stream.calling.client import BusSkillClient
from dimos_streams.tool_stream.event import EventType, Outcome, ToolEvent
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, EVENTS, PENDING, REQUESTS, STATUS
from dimos_streams.tool_stream.sending.call_writer import CallWriter
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.helpers import refuse_after

OWN = "asking-1"
"""The instance that runs the parents."""


@asynccontextmanager
async def client_on_a_bus(
    *, bridge_was_heard: bool = True, call_id: str = "parent"
) -> AsyncIterator[tuple[Bus, BusSkillClient]]:
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    publisher = ToolStreamPublisher(bus)
    if bridge_was_heard:
        publisher.receivers.heard("bridge")
    own = CallWriter(publisher, call_id, "asking", "ask", "agent")
    streams = ChildStreams(bus, directory, lambda: OWN)
    yield bus, BusSkillClient(bus, directory, streams, own, read_only=False)
    streams.stop()
    directory.stop()
    await bus.close()


@pytest.mark.virtual_time
async def test_a_module_that_has_only_just_started_is_waited_for() -> None:
    async with client_on_a_bus() as (bus, client):
        checking = asyncio.create_task(client.check("go", {}))
        await asyncio.sleep(0.5)
        skills = json.dumps([{"name": "go", "description": "", "parameters": {}}])
        bus.publish(STATUS, encode(ModuleStatus(module="m", instance="1", skills_version="1", skills_json=skills)))
        await checking
        began = clock.monotonic()
        with pytest.raises(UnknownSkillError, match="'stay'"):
            await client.check("stay", {})
        assert clock.monotonic() - began == pytest.approx(1.0, abs=0.1)


@pytest.mark.virtual_time
async def test_a_number_that_json_lacks_is_refused_and_not_left_out() -> None:
    async with client_on_a_bus() as (bus, client):
        asked: list[bytes] = []
        bus.subscribe(CALLS, lambda channel, data: asked.append(data))
        for begin in (client.start("go", {"x": math.nan}), client.check("go", {"x": math.nan})):
            with pytest.raises(SkillArgumentError, match=r"'go' cannot take these arguments: x: .* \(given: nan\)"):
                await begin
        with pytest.raises(SkillRunError, match=r"arguments: x: it must be a finite number \(given: nan\)") as error:
            await client.run("go", x=math.nan)
        assert error.value.outcome is Outcome.REJECTED
        await asyncio.sleep(0)
        assert not asked


@pytest.mark.virtual_time
async def test_what_is_for_operators_is_refused_before_it_is_asked_for() -> None:
    async with client_on_a_bus() as (bus, client):
        skills = json.dumps([{"name": "hold", "description": "", "parameters": {}, "audience": "operator"}])
        bus.publish(STATUS, encode(ModuleStatus(module="m", instance="1", skills_version="1", skills_json=skills)))
        with pytest.raises(CallRejectedError, match="'hold' is for operators: no skill may begin it"):
            await client.check("hold", {})


@pytest.mark.virtual_time
async def test_a_call_that_is_dropped_before_it_began_is_withdrawn_several_times() -> None:
    async with client_on_a_bus() as (bus, client):
        cancelled: list[tuple[float, str, str]] = []

        def note(channel: str, data: bytes) -> None:
            message = decode(SkillCancel, data, channel=channel)
            cancelled.append((clock.monotonic() - dropped, message.call_id, message.reason))

        bus.subscribe(CANCELS, note)
        starting = asyncio.create_task(client.start("go", {}))
        await asyncio.sleep(1.0)
        starting.cancel()
        dropped = clock.monotonic()
        await asyncio.wait([starting])
        await asyncio.sleep(2.0)
        assert [after_s for after_s, _, _ in cancelled] == pytest.approx([0.0, 0.1, 0.3, 0.7], abs=0.01)
        reason = "call 'parent', which asked for it, does not want it any more"
        assert {each[1:] for each in cancelled} == {("parent.1", reason)}


@pytest.mark.virtual_time
async def test_a_call_that_nobody_takes_is_asked_for_again_and_given_up() -> None:
    async with client_on_a_bus() as (bus, client):
        asked: Counter[str] = Counter()
        bus.subscribe(CALLS, lambda channel, data: asked.update([decode(SkillCall, data, channel=channel).call_id]))
        began = clock.monotonic()
        for number in (1, 2):
            with pytest.raises(SkillError, match="nobody took the call of 'go' within 5 s; does a bridge run"):
                await client.start("go", {})
            assert clock.monotonic() - began == pytest.approx(5.0 * number, abs=0.5)
        assert list(asked) == ["parent.1", "parent.2"]
        assert min(asked.values()) >= 5


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("skill", "arguments", "why"),
    [
        ("g\u00ado", {}, r"no skill is called 'g\\xado'; did you mean 'go'\? \(offered: go\)"),
        ("/" * 600 + "go", {}, r"no skill is called '/+go'.* \(offered: go\)"),
        (
            "go",
            {"x": json.loads("[" * 220 + "]" * 220)},
            "arguments of 'go' can't be read: bad JSON: recursion limit",
        ),
    ],
)
async def test_what_the_bridge_could_not_read_is_refused_before_it_is_asked_for(
    skill: str, arguments: dict[str, object], why: str
) -> None:
    async with client_on_a_bus() as (bus, client):
        asked: list[bytes] = []
        bus.subscribe(CALLS, lambda channel, data: asked.append(data))
        skills = json.dumps([{"name": "go", "description": "", "parameters": {}}])
        bus.publish(STATUS, encode(ModuleStatus(module="m", instance="1", skills_version="1", skills_json=skills)))
        await client.check("go", {})
        began = clock.monotonic()
        with pytest.raises(CallRejectedError, match=why):
            await client.start(skill, arguments)
        assert clock.monotonic() - began < 0.1
        with pytest.raises(SkillRunError, match=why) as refused:
            await client.run(skill, arguments)
        assert refused.value.outcome == Outcome.REJECTED
        assert clock.monotonic() - began < 0.1
        assert asked == []


@pytest.mark.virtual_time
async def test_a_chain_of_calls_that_is_too_long_for_an_id_is_refused() -> None:
    async with client_on_a_bus(call_id="c" * 199) as (_, client):
        began = clock.monotonic()
        with pytest.raises(CallRejectedError, match=r"'go' can't be begun: the chain .* has 201 characters, 200 are"):
            await client.start("go", {})
        assert clock.monotonic() - began < 0.1


@pytest.mark.virtual_time
async def test_a_host_that_has_stopped_acknowledges_no_childs_events() -> None:
    bus = create_bus("memq://")
    await bus.open()
    requests: list[str] = []
    bus.subscribe(
        REQUESTS, lambda channel, data: requests.append(decode(ToolStreamRequest, data, channel=channel).kind)
    )
    directory, publisher = ModuleDirectory(bus), ToolStreamPublisher(bus)
    publisher.instance = OWN
    streams = ChildStreams(bus, directory, lambda: OWN)
    streams.stop()
    streams.open("parent~1")
    writer = publisher.begin("parent~1", module="m", skill="s", caller="c", text="", data={})
    await asyncio.sleep(0.1)
    assert requests == ["ack"]
    streams.stop()
    streams.stop()
    await writer.update("unheard", {})
    await asyncio.sleep(0.1)
    assert requests == ["ack"]
    await bus.close()


@pytest.mark.virtual_time
async def test_where_no_bridge_was_ever_heard_of_a_call_is_given_up_at_once() -> None:
    async with client_on_a_bus(bridge_was_heard=False) as (_, client):
        began = clock.monotonic()
        with pytest.raises(SkillError, match="nobody took the call of 'go': there is no bridge on this bus"):
            await client.start("go", {})
        assert clock.monotonic() - began == pytest.approx(2.0, abs=0.3)  # an acknowledgement may still be on its way
        for ask, within_s in ((client.start, 0.3), (client.run, 1.3)):  # a child gets a second to end
            began = clock.monotonic()
            with pytest.raises(SkillError, match="there is no bridge"):
                await ask("go", {})
            assert clock.monotonic() - began < within_s


@pytest.mark.virtual_time
async def test_a_call_that_waits_is_waited_for_as_long_as_the_bridge_says_so() -> None:
    async with client_on_a_bus() as (bus, client):
        asked: list[float] = []
        waited: list[float] = []
        bus.subscribe(CALLS, lambda channel, data: asked.append(clock.monotonic()))
        subscribed = len(list(bus.subscriptions()))

        async def on_wait() -> None:
            waited.append(clock.monotonic())

        began = clock.monotonic()
        starting = asyncio.create_task(client.start("go", {}, on_wait=on_wait))
        for call_id in ("parent.1", "parent.1", "other.1"):
            await asyncio.sleep(3.0)
            bus.publish(REQUESTS, encode(ToolStreamRequest(kind=PENDING, call_id=call_id)))
        with pytest.raises(SkillError, match="nobody took the call of 'go' within 5 s"):
            await starting
        assert clock.monotonic() - began == pytest.approx(11.5, abs=1.0), "from the last sign on"
        assert len(waited) == 1
        seldom = [time for time in asked if time - began > 4.0]
        assert len(seldom) <= 8, "who waits asks once a second"
        assert len(list(bus.subscriptions())) == subscribed


@pytest.mark.virtual_time
@pytest.mark.parametrize("taken", range(4))
async def test_after_a_moment_in_which_the_bus_refused_children_are_heard(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the process had no file left for a packet filter."""
    async with client_on_a_bus() as (bus, client):
        before = len(bus.subscriptions())
        with monkeypatch.context() as system:
            refuse_after(bus, system, taken)
            with pytest.raises(BusError, match="the bus refuses"):
                await client.run("go")
        assert len(bus.subscriptions()) == before + (2 if taken > 1 else 0), "those of the receiver last"

        running = asyncio.create_task(client.run("go"))
        await asyncio.sleep(0.1)
        names: dict[str, Any] = {"module": "m", "skill": "go", "caller": "c", "instance": OWN}
        for seq, type in enumerate(("open", "close"), start=1):
            data = {"outcome": "completed", "result": 7} if type == "close" else {}
            event = ToolEvent(utime=1, call_id="parent~2", seq=seq, type=type, text="", data=data, **names)  # type: ignore[arg-type]
            bus.publish(EVENTS, pack_event(event))
        assert await running == 7


@pytest.mark.virtual_time
async def test_what_is_done_meanwhile_may_take_longer_than_the_bridge_has_to_answer() -> None:
    async with client_on_a_bus() as (bus, client):
        names: dict[str, Any] = {"module": "m", "skill": "go", "caller": "c", "instance": OWN}
        for number, opens_after_s in ((1, 5.0), (2, 9.0)):  # in the middle of it, and behind it
            call_id = f"parent.{number}"
            starting = asyncio.create_task(client.start("go", {}, on_wait=lambda: asyncio.sleep(7.0)))
            await asyncio.sleep(0.1)
            bus.publish(REQUESTS, encode(ToolStreamRequest(kind=PENDING, call_id=call_id)))
            await asyncio.sleep(opens_after_s)
            bus.publish(EVENTS, pack_event(ToolEvent(utime=1, call_id=call_id, seq=1, type="open", text="", **names)))
            assert await starting == call_id


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("type", "data", "taken"),
    [
        ("open", {}, True),
        ("open", {"refused": True}, False),
        ("update", {}, True),
        ("close", {"outcome": "failed"}, True),
    ],
)
async def test_the_first_event_of_a_call_says_whether_it_has_begun(
    type: EventType, data: dict[str, object], taken: bool
) -> None:
    async with client_on_a_bus() as (bus, client):

        def say(call_id: str, type: EventType, data: dict[str, object], text: str = "") -> None:
            names: dict[str, Any] = {"module": "m", "skill": "go", "caller": "c", "instance": OWN}
            event = ToolEvent(utime=1, call_id=call_id, seq=1, type=type, text=text, data=data, **names)
            bus.publish(EVENTS, pack_event(event))

        starting = asyncio.create_task(client.start("go", {}))
        await asyncio.sleep(0.1)
        say("parent.2", "open", {})
        bus.publish(EVENTS, b"no event")
        await asyncio.sleep(0.1)
        assert not starting.done()
        say("parent.1", type, data)
        say("parent.1", type, data)
        await asyncio.sleep(0.1)
        assert starting.done() == taken
        if not taken:
            for _ in range(2):
                say("parent.1", "close", {"outcome": "rejected"}, "it is busy")
            with pytest.raises(CallRejectedError, match="it is busy"):
                await starting
        await asyncio.sleep(2.0)
        assert bus.statistics().errors == 0


def event(number: int, type: EventType = "update") -> ToolEvent:
    data = {"outcome": "completed"} if type == "close" else {}
    return ToolEvent(
        utime=1, call_id="c", seq=number, type=type, module="m", skill="s", caller="c", text=f"{number}", data=data
    )


@pytest.mark.virtual_time
async def test_what_a_child_says_waits_within_a_bound_and_progress_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_MAX_WAITING", 3)
    stream = ChildStream()
    began = clock.monotonic()
    await stream.changed(0.5)
    assert (clock.monotonic() - began, stream.read()) == (0.5, ([], 0))
    types: list[EventType] = ["update", "progress", "progress", "update", "progress"]
    for number, type in enumerate(types):
        stream.put(event(number, type))
    await stream.changed(0.5)
    assert clock.monotonic() - began == 0.5
    events, dropped = stream.read()
    assert ([each.seq for each in events], dropped) == ([2, 3, 4], 1)
    assert stream.close is None
    for number in range(4):
        stream.put(event(number))
    stream.put(event(4, "close"))
    events, dropped = stream.read()
    assert ([each.seq for each in events], dropped) == ([2, 3, 4], 2)
    assert stream.close is events[-1]
    assert stream.close.outcome is Outcome.COMPLETED
    assert (stream.read(), stream.heard_at) == (([], 0), clock.monotonic())
    await stream.changed(0.5)
    assert clock.monotonic() - began == 1.0, "all was read"
