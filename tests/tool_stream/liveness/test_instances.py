"""Two instances of one module on a bus, and one after another, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import create_bus
from dimos_streams.errors import SkillUnavailableError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.testing import CrashablePart, Faults
from dimos_streams.testing.bus_calls import request_call
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.helpers import until


class Walker(Module):
    """Walks."""

    @skill(motion=True)
    async def walk(self, call: Call, seconds: float) -> str:
        """Walk."""
        await call.update("walking")
        await asyncio.sleep(seconds)
        return "there"

    @skill(motion=True)
    async def march(self, call: Call, steps: int) -> str:
        """Walk, and say so again and again."""
        for step in range(steps):
            await call.update(f"step {step}")
            await asyncio.sleep(0.5)
        return "there"


@asynccontextmanager
async def two_walkers(faults: Faults | None = None) -> AsyncIterator[tuple[Broker, CrashablePart, CrashablePart]]:
    """A bridge, a walker that runs, and another that may be started."""
    bus = create_bus("memq://")
    await bus.open()
    bridge = CrashablePart(bus, lambda context: [Bridge({"http": False}, name="bridge", context=context)])
    parts = [
        CrashablePart(bus, lambda context: [Walker(name="walker", context=context)], faults=faults, seed=seed)
        for seed in (1, 2)
    ]
    await bridge.start()
    await parts[0].start()
    await asyncio.sleep(1.0)
    module = bridge.module("bridge")
    assert isinstance(module, Bridge)
    try:
        yield module.broker, parts[0], parts[1]
    finally:
        for part in (*parts, bridge):
            await part.stop()
        await bus.close()


async def closed(broker: Broker, call_id: str) -> CallView:
    assert await broker.wait(call_id, "close", 60.0)
    return await broker.view(call_id)


def health(broker: Broker) -> str:
    view = broker.directory.module("walker")
    assert view is not None
    return view.health


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
@pytest.mark.parametrize("loss", [0.0, 0.2])
async def test_a_second_instance_loses_no_call(loss: float, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    async with two_walkers(Faults(loss=loss)) as (broker, _, second):
        elder = broker.directory.module("walker")
        call_id = await broker.call("walk", {"seconds": 12.0}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        await second.start()
        await asyncio.sleep(2.0)
        now = broker.directory.module("walker")
        assert elder is not None
        assert now is not None
        since = datetime.fromtimestamp(elder.started_utime / 1e6)  # of this machine's time zone
        text = f"2 instances run under this name: pid 0 on an unknown host since {since:%Y-%m-%d %H:%M:%S}, instance "
        assert health(broker).startswith(text)
        assert now.instance == elder.instance, "the instance that is shown does not flap"
        assert now.rivals[0].id == elder.instance
        with pytest.raises(SkillUnavailableError, match="may move two robots: 2 instances run under this name"):
            await broker.call("walk", {"seconds": 1.0}, caller="test")
        assert (await closed(broker, call_id)).outcome is Outcome.COMPLETED
        await second.stop()
        await asyncio.sleep(2.0)
        assert health(broker) == "ok"
        assert (
            await closed(broker, await broker.call("walk", {"seconds": 0.1}, caller="test"))
        ).outcome is Outcome.COMPLETED
    warnings = [record.getMessage() for record in caplog.records if "runs beside another" in record.getMessage()]
    assert len(warnings) == 2, "each of the two says it, once"


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_a_call_that_a_restarted_module_begins_again_is_ended_there_and_forgotten() -> None:
    """Its request was repeated before anybody had heard that it had begun."""
    async with two_walkers() as (broker, first, second):
        call_id = await broker.call("march", {"steps": 100}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        await asyncio.sleep(0.7)
        first.crash()
        await asyncio.sleep(0.1)
        await second.start()
        names = {"module": "walker", "skill": "march", "caller": "test"}
        request_call(second.bus, call_id, arguments={"steps": 100}, **names)
        assert (await closed(broker, call_id)).outcome is Outcome.LOST
        life = second._life
        assert life is not None
        await until(lambda: life.host._skills.outcome(call_id) is Outcome.LOST)
        await until(lambda: not life.host._skills.publisher.heartbeat_calls("walker"))


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_a_motion_that_a_dead_instance_may_have_begun_is_not_begun_by_the_next() -> None:
    async with two_walkers() as (broker, first, second):
        first.bus.faults = Faults(loss=1.0)  # it hears, and nobody hears it
        call_id = await broker.call("walk", {"seconds": 0.01}, caller="test")
        await asyncio.sleep(0.05)
        first.crash()
        await second.start()
        view = await closed(broker, call_id)
        again = "module 'walker' was started again before it had said that it began the call"
        assert (view.outcome, view.text) == (Outcome.LOST, f"{again}: nobody knows whether it did")
        life = second._life
        assert life is not None
        await asyncio.sleep(1.0)
        assert life.host._skills.outcome(call_id) is Outcome.LOST, "it was told, and has not begun"
        after = await broker.call("walk", {"seconds": 0.01}, caller="test")
        assert (await closed(broker, after)).outcome is Outcome.COMPLETED


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
@pytest.mark.parametrize("behind_s", [0.0, 30.0])
async def test_a_request_that_is_still_on_its_way_begins_no_motion_of_a_dead_instance_once_more(
    behind_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the bridge's clock is ``behind_s`` that of the module's machine."""
    async with two_walkers() as (broker, first, second):
        requests: list[bytes] = []
        second._bus.subscribe(CALLS, lambda _, data: requests.append(data))
        first.bus.faults = Faults(loss=1.0)  # it hears, and nobody hears it
        with monkeypatch.context() as patch:
            now = clock.utime
            patch.setattr(clock, "utime", lambda: now() - int(behind_s * 1e6))
            call_id = await broker.call("walk", {"seconds": 0.01}, caller="test")
        await asyncio.sleep(0.05)
        life = first._life
        assert life is not None
        assert life.host._skills.publisher.knows(call_id), "the first one takes it, whatever the bridge's clock says"
        first.crash()
        await second.start()
        second._bus.publish(CALLS, requests[0])
        assert (await closed(broker, call_id)).outcome is Outcome.LOST
        life = second._life
        assert life is not None
        assert not life.host._skills.publisher.knows(call_id)


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_a_restart_is_no_second_instance() -> None:
    """Also where a few messages of the dead one are still on their way."""
    async with two_walkers(Faults(delay_s=(0.0, 0.2))) as (broker, first, _):
        call_id = await broker.call("walk", {"seconds": 60.0}, caller="test")
        await broker.wait(call_id, "answer", 5.0)
        await asyncio.sleep(0.7)
        died = clock.monotonic()
        first.crash()
        await asyncio.sleep(0.1)
        await first.start()
        await asyncio.sleep(0.05)
        again = await broker.call("walk", {"seconds": 0.5}, caller="test")
        view = await closed(broker, call_id)
        assert clock.monotonic() - died <= 2.0
        assert (view.outcome, view.text) == (Outcome.LOST, "module 'walker' was started again while the call ran")
        assert (await closed(broker, again)).outcome is Outcome.COMPLETED
        for _ in range(30):
            await asyncio.sleep(0.1)
            assert health(broker) == "ok"
