"""Calls that a call has gone on with, of which the first event is lost: their ids say which call that was."""

from __future__ import annotations

import pytest

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.open_call import CallContext
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.family import continuation_id
from tests.agent.loop.fake_bridge import FakeBridge, FakeCall, offered
from tests.agent.policies.gate_bench import GateBench
from tests.helpers import until

pytestmark = [pytest.mark.feature("A9", "B10"), pytest.mark.virtual_time]


async def _nothing(*_: object) -> None:
    pass


class Bridge(FakeBridge):
    """It notes what it is to end, and never ends it."""

    async def cancel(self, call_id: str, reason: str) -> None:
        self.to_end = call_id


@pytest.mark.parametrize("ended", [False, True])
async def test_it_is_the_work_of_whoever_asked_and_held_to_the_same_list(ended: bool) -> None:
    async def wait(call: FakeCall) -> None:
        await call.bridge.arrived.wait()

    bridge = Bridge({"wait": (offered("wait"), wait), "drive": (offered("drive"), wait)})
    manager = CallManager(bridge, "agent", _nothing, key_prefix="a")
    asking = await manager.start("wait", {}, CallContext((Mission("m"),), reviewer=GateBench().chain))
    if ended:
        asking.ask_to_end("enough")
    call_id = continuation_id(asking.call_id, 1)
    event = ToolEvent(
        utime=1, call_id=call_id, seq=7, type="update", module="m", skill="drive", caller="agent", text="on my way"
    )
    await manager.incoming.observe(event, 1)
    call = manager.known.get(call_id)
    assert call is not None
    assert (call.parent, call.context) == (asking.call_id, asking.context)
    if ended:
        await until(lambda: vars(bridge).get("to_end") == call_id)
    await manager.stop()
    await bridge.close()
