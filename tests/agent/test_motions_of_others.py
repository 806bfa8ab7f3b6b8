"""An agent sees as a motion of others what may move its own robot, and nothing that moves another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from dimos_streams.agent.control.others_calls import OthersCalls
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.tool_stream.gateway import CallView


@dataclass
class OpenCalls:
    """A bridge of which only the open calls matter, and a catalog in which all skills but one move."""

    views: list[CallView]

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        return self.views

    def may_move(self, skill: str) -> bool:
        return skill != "look"


@pytest.mark.virtual_time
@pytest.mark.feature("B5")
async def test_only_what_moves_the_agents_own_robot() -> None:
    calls = [
        ("own", "drive", "r1/base", "script"),
        ("shared", "drive", "base", "script"),
        ("another's", "drive", "r2/base", "script"),
        ("like it", "drive", "r1b/base", "script"),
        ("sensing", "look", "r1/eye", "script"),
        ("bridge's", "drive", "r1/base", "bridge"),
    ]
    world: Any = OpenCalls(
        [
            CallState(call_id=call_id, skill=skill, module=module, caller=caller, state="open").view()
            for call_id, skill, module, caller in calls
        ]
    )
    others = OthersCalls("r1/agent", world, world, control=cast("Any", None), bound_s=lambda: 1.0)
    assert [view.call_id for view in await others.moving()] == ["own", "shared"]
