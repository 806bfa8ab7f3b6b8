"""Gates that were down when their robot was released hear of it once they are back, each instance once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from dimos_streams.bridge.calls.stops.late_gates import LateGates
from dimos_streams.messages.codec import channel_name
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.operator.holding import LATE_GATE_S, STOP_ROBOT, VelocityGateState
from dimos_streams.tool_stream.liveness.module_view import ModuleView

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K5")]

HOLD = channel_name("/robot1/hold", Hold)
FREE = VelocityGateState(listens=True, channel=HOLD, still=False)
HOLDING = FREE.model_copy(update={"holds": (STOP_ROBOT,)})
GATE = ModuleView("robot1/gate", "first", 1, "ok", 0.0, ())


async def released(*robots: str) -> LateGates:
    """Gates of these robots, released one second after another and one second ago."""
    late = LateGates()
    for robot in robots:
        late.release(robot)
        await asyncio.sleep(1.0)
    return late


async def test_each_instance_that_holds_is_told_once() -> None:
    late = await released("robot1")
    assert late.channels([(GATE, HOLDING)]) == {HOLD}
    assert late.channels([(GATE, HOLDING)]) == set()
    assert late.channels([(replace(GATE, instance="second"), HOLDING)]) == {HOLD}


async def test_what_a_gate_holds_for_after_it_was_free_is_not_undone_by_that_release() -> None:
    late = await released("robot1")
    assert late.channels([(GATE, FREE)]) == set()
    assert late.channels([(GATE, HOLDING)]) == late.channels([(replace(GATE, instance="second"), HOLDING)]) == set()
    late.release("robot2")
    await asyncio.sleep(1.0)
    assert late.channels([(GATE, HOLDING)]) == set(), "the release of another robot"
    late.release("robot1")
    await asyncio.sleep(1.0)
    assert late.channels([(GATE, HOLDING)]) == {HOLD}


async def test_what_was_said_before_the_newest_release_counts_for_nothing() -> None:
    late = await released("robot1", "")
    assert late.channels([(replace(GATE, age_s=1.5), HOLDING)]) == set()
    assert late.channels([(replace(GATE, age_s=0.5), HOLDING)]) == {HOLD}


async def test_after_a_while_nobody_is_waited_for_any_more() -> None:
    late = await released("robot1")
    await asyncio.sleep(LATE_GATE_S - 1.0)
    assert late.awaited
    await asyncio.sleep(0.5)
    assert not late.awaited
    assert late.channels([(GATE, HOLDING)]) == set()


async def test_a_gate_is_told_on_a_channel_for_holds_only() -> None:
    late = await released("robot1")
    velocities = HOLDING.model_copy(update={"channel": channel_name("/robot1/cmd_vel", Twist)})
    assert late.channels([(GATE, velocities)]) == set()
