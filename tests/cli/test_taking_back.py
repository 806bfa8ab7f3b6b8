"""`undo`: what became of each call that was to be taken back, in a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dimos_streams.cli.bridge_client.operator_commands import CommandResult, order
from dimos_streams.cli.consoles.chat_commands import chat_command
from dimos_streams.client.local_gateway import LocalGateway
from dimos_streams.errors import SkillError, UserError
from dimos_streams.operator.agents import agents_among, choose_agent
from dimos_streams.tool_stream.gateway import CallView
from tests.agent.stage import stage
from tests.helpers import until


class Bridge(LocalGateway):
    """A bridge within the process that does what `POST /calls?wait=close` does."""

    async def call_to_close(
        self, skill: str, arguments: Mapping[str, Any], *, caller: str, agent: str | None = None, wait_s: float = 30.0
    ) -> CallView:
        public = choose_agent(agents_among(await self.skills()), agent or "").skill(skill)
        call_id = await self.call(public, arguments, caller=caller)
        async for journalled in self.events(after=0, call_id=call_id):
            if journalled.event.type == "close":
                break
        return next(view for view in await self.calls() if view.call_id == call_id)


@pytest.mark.virtual_time
async def test_a_call_that_cant_be_taken_back_is_named() -> None:
    async with stage() as s:
        gateway = Bridge(s.agent.context.services)
        await until(lambda: "agent" in {view.name for view in s.bridge.broker.directory.modules() if view.skills})
        assert await chat_command(gateway, "", "undo", []) == "there is nothing of the agent's to take back"
        moved = await s.say("move 1")
        await moved.closed()
        nothing_else = "there is nothing else of the agent's to take back"
        one_of_two = rf"^move \(call \S+\): impossible: it declares no undo\n0 of 2 undone; {nothing_else}$"
        with pytest.raises(SkillError, match=one_of_two):
            await chat_command(gateway, "", "undo", ["2"])
        none = {"asked": 3, "found": 0, "undone": []}
        text = "0 of 3 undone; there is nothing of the agent's to take back"
        assert await order(gateway, "undo", {"count": 3}) == CommandResult(text, none)
        for words in (["all"], ["0"], ["1", "2"], ["9" * 5000]):
            with pytest.raises(UserError):
                await chat_command(gateway, "", "undo", words)
