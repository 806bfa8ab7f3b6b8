"""An agent's name is nobody else's, also while the agent hangs and the bridge starts again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.errors import CallRejectedError
from dimos_streams.module import Module
from dimos_streams.skill import skill
from tests.bridge.parts import scene


class Reviewer(Module):
    """Is an agent, by its skill for reviews."""

    @skill(audience="bridge")
    async def review_call(self) -> None:
        """Look at nothing."""


@pytest.mark.parametrize("knows_of_it", ["its blueprint", "an earlier call"])
@pytest.mark.virtual_time
async def test_the_name_of_an_agent_that_hangs_is_not_free_when_the_bridge_starts_again(
    knows_of_it: str, tmp_path: Path
) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        agent = await world.add(Reviewer(name="agent"))
        await world.offered("review_call")
        if knows_of_it == "its blueprint":
            world.agents = frozenset({"agent"})
        else:
            await world.broker.call("count", {"label": "a", "to": 1}, caller="agent", idempotency_key="agent/1")
        agent.bus.partitioned = True
        await world.kill_bridge()
        await world.start_bridge()
        await world.offered("follow")
        assert world.broker.directory.module("agent") is None
        with pytest.raises(CallRejectedError, match="'agent' is the name of an agent"):
            await world.broker.call("count", {"label": "a", "to": 1}, caller="agent")
        with pytest.raises(CallRejectedError, match="'agent' is the name of an agent"):
            await world.broker.settings.change(["worker.pace=2"], "agent")
