"""A skill that needs an approval does not begin for an MCP client, for whom nobody asks an operator."""

from __future__ import annotations

import pytest

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.errors import CallRejectedError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.scene import Scene, closed, scene

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("D5")]

CLIENT = "mcp/claude"


class Press(Module):
    """Asks before it presses."""

    @skill(approval="ask")
    async def press(self) -> str:
        """Press."""
        return "pressed"

    @skill
    async def automate(self, call: Call) -> str:
        """Press without being asked."""
        return str(await call.skills.run("press"))


async def outcome(broker: Broker, name: str, caller: str) -> tuple[Outcome | None, str]:
    view = await closed(broker, await broker.call(name, {}, caller=caller))
    return view.outcome, view.text


async def with_press(world: Scene) -> Broker:
    await world.add(Press(name="press"))
    await world.offered("automate")
    return world.broker


async def test_it_is_refused_also_to_skills_that_a_client_calls() -> None:
    async with scene(worker=False) as world:
        broker = await with_press(world)
        why = r"'press' needs an operator's approval, and nobody asks .* for 'mcp/claude'.*`mcp_approval: client`"
        with pytest.raises(CallRejectedError, match=why):
            await broker.call("press", {}, caller=CLIENT)
        ended, text = await outcome(broker, "automate", CLIENT)
        assert (ended, "needs an operator's approval" in text) == (Outcome.FAILED, True)
        for name in ("press", "automate"):
            assert (await outcome(broker, name, "ann"))[0] is Outcome.COMPLETED, "operators approve by calling"


async def test_it_begins_where_the_approvals_of_clients_count() -> None:
    async with scene(worker=False, mcp_approval="client") as world:
        broker = await with_press(world)
        for name in ("press", "automate"):
            assert (await outcome(broker, name, CLIENT))[0] is Outcome.COMPLETED
