"""Which calls models that are no agents of the run may know of, and which they may stop besides."""

from __future__ import annotations

import pytest

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.visibility import may_move, shown_to_models, stoppable_by_models
from dimos_streams.module import Module
from dimos_streams.skill import skill
from tests.bridge.calls.driven_robots import Gripper
from tests.bridge.scene import scene


class Base(Module):
    """A base that operators send home."""

    @skill(audience="operator", motion=True)
    async def go_home(self) -> None:
        """Go home."""

    @skill(audience="operator")
    async def talk(self) -> None:
        """Say something."""


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("name", "caller", "is_shown", "moves"),
    [
        ("search", "you", True, False),
        ("hold_tight", "you", True, True),
        ("go_home", "you", False, True),
        ("talk", "you", False, False),
        ("gone", "mcp/a", True, True),
        ("gone", "you", False, False),
    ],
)
async def test_motions_may_be_stopped_by_whoever_may_not_know_of_them(
    name: str, caller: str, is_shown: bool, moves: bool
) -> None:
    async with scene() as world:
        await world.add(Gripper(name="gripper"), Base(name="base"))
        for known in ("hold_tight", "go_home"):
            await world.offered(known)
        call = CallState(call_id="c1", skill=name, module="somewhere", caller=caller)
        assert shown_to_models(world.broker)(call) is is_shown
        assert may_move(world.broker)(call) is moves
        assert stoppable_by_models(world.broker)(call) is (is_shown or moves)
