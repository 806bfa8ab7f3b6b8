"""Calls that are to end are asked to end, however slow the bridge is, and whoever waits for that."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.missions.message_queue import CallUpdate
from dimos_streams.tool_stream.event import Outcome
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import FakeBridge, FakeCall, offered
from tests.agent.loop.function_model import FunctionModel, says
from tests.helpers import until


class SlowBridge(FakeBridge):
    """It takes 0.3 s for each call that it is asked to end."""

    async def cancel(self, call_id: str, reason: str) -> None:
        await asyncio.sleep(0.3)
        await super().cancel(call_id, reason)


async def _drive(call: FakeCall) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if call.arguments.get("ends", True):
            raise
        await asyncio.Event().wait()


async def _ignore(update: CallUpdate) -> None:
    pass


def _bridge() -> SlowBridge:
    return SlowBridge({"drive": (offered("drive", motion=True), _drive)})


@pytest.mark.feature("E10")
@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.virtual_time
async def test_calls_that_are_given_up_are_asked_to_end_all_the_same(is_cancelled: bool) -> None:
    """Of a hundred only some get their turn within the bound."""
    bridge = _bridge()
    manager = CallManager(bridge, "agent", _ignore, key_prefix="a")
    calls = [await manager.start("drive", {"number": number}) for number in range(100)]
    ending = asyncio.create_task(manager.endings.end(calls, "enough", bound_s=0.6))
    await asyncio.sleep(0.1)
    if is_cancelled:
        ending.cancel()
    else:
        assert len(await ending) == 100, "nobody reads the events here"
    await until(lambda: all(call.outcome is Outcome.CANCELLED for call in bridge.calls_.values()))
    await manager.stop()
    await bridge.close()


@pytest.mark.feature("E10")
@pytest.mark.virtual_time
async def test_a_call_that_turns_up_late_in_an_abort_is_asked_to_end_and_has_a_moment_for_it() -> None:
    bridge = _bridge()
    async with AgentInMemory(
        bridge, FunctionModel(lambda request: says("")), {"limits": {"abort_bound_s": 1.0}}
    ) as agent:
        stubborn = await bridge.call("drive", {"ends": False}, caller="agent")
        await until(lambda: len(agent.core.calls.known.open) == 1)
        aborting = asyncio.create_task(agent.core.loop.abort())
        await asyncio.sleep(0.9)
        late = await bridge.call("drive", {}, caller="agent")
        assert (await aborting).unfinished == (stubborn,)
        assert bridge.calls_[late].outcome is Outcome.CANCELLED
