"""Beside an order to take calls back, the bridge begins no motion but those of the agent that it was given to."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.undos import check_undos
from dimos_streams.errors import CallRejectedError
from dimos_streams.skill import SkillInfo

pytestmark = pytest.mark.feature("B5", "K5")


def call(skill: str, module: str, caller: str = "somebody", **arguments: Any) -> CallState:
    return CallState(call_id=f"c-{skill}", skill=skill, module=module, caller=caller, arguments=arguments)


def is_refused(asked: CallState, order: CallState, **policy: Any) -> bool:
    info = SkillInfo(name=asked.skill, description="Move.", parameters={}, **({"motion": True} | policy))
    try:
        check_undos(asked, asked.module, info, [order], lambda module: module.endswith("agent"))
    except CallRejectedError as error:
        return error.holder == order.call_id
    return False


UNDO = call("r1_undo", "r1/agent")


@pytest.mark.parametrize(
    ("order", "refused"),
    [
        (UNDO, True),
        (call("r1_abort", "r1/agent", rollback=True), True),
        (call("r1_abort", "r1/agent"), False),
        (call("r1_pause", "r1/agent"), False),
        (call("r1_undo", "r1/editor"), False),
        (call("undo", "agent"), True),
        (call("r2_undo", "r2/agent"), False),
    ],
)
def test_the_order_counts_for_the_agents_own_robot(order: CallState, refused: bool) -> None:
    assert is_refused(call("r1_drive", "r1/base"), order) is refused


@pytest.mark.parametrize(
    ("asked", "policy", "refused"),
    [
        (call("r1_drive", "r1/base", caller="r1/agent"), {}, False),
        (call("r1_drive", "r1/base", caller="agent"), {}, True),
        (call("r1_sing", "r1/mouth"), {"motion": False}, False),
        (call("r1_grip", "r1/arm"), {"motion": False, "resources": ("arm",)}, True),
        (call("drive", "base"), {}, True),
    ],
)
def test_what_may_move_the_robot_is_refused_unless_the_agent_asks_for_it(
    asked: CallState, policy: dict[str, Any], refused: bool
) -> None:
    assert is_refused(asked, UNDO, **policy) is refused
