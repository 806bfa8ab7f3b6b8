"""`undo`: what became of each call that was to be taken back, in a line each."""

from __future__ import annotations

import pytest

from dimos_streams.cli.bridge_client.operator_commands import Told, chat_command, take_back
from dimos_streams.errors import SkillError, UserError
from tests.agent.stage import stage
from tests.helpers import until


@pytest.mark.virtual_time
async def test_a_call_that_cant_be_taken_back_is_named() -> None:
    async with stage() as s:
        gateway = s.agent.core.gateway
        await until(lambda: "agent" in {view.name for view in s.bridge.broker.directory.modules() if view.skills})
        assert await chat_command(gateway, "", "undo", []) == "there is nothing to take back"
        moved = await s.say("move 1")
        await moved.closed()
        with pytest.raises(SkillError, match=r"^move \(call \S+\): impossible: it declares no undo$"):
            await chat_command(gateway, "", "undo", ["2"])
        assert await take_back(gateway, 1) == Told("there is nothing to take back", [])
        for words in (["all"], ["0"], ["1", "2"]):
            with pytest.raises(UserError):
                await chat_command(gateway, "", "undo", words)
