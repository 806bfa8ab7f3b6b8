"""Goals whose action server is started anew while they run: it does not know them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dimos_streams.errors import SkillError
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.ros2.actions.types import CancelAnswer, GoalStatus
from dimos_streams.ros2.cdr import encode
from dimos_streams.ros2.layout import struct_of
from dimos_streams.ros2.module import Ros2Robot
from dimos_streams.ros2.wire import Wire
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.ros2.action_world import world
from tests.ros2.fast_dds import FastDdsRobot

pytestmark = pytest.mark.feature("G4")

RESTARTED = "the action server of /navigate_to_pose was restarted; the goal is lost"


@pytest.mark.virtual_time
async def test_a_goal_is_lost_when_the_server_that_had_it_is_gone_though_another_one_is_there() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.server.forget()
        at.server.say_status()
        at.wire.writers |= {"second"}
        await asyncio.sleep(20.0)  # the first is silent, and counts as there for as long as DDS says so
        assert call.texts("close") == []
        at.wire.writers -= {"first"}
        with pytest.raises(SkillError, match=f"^{RESTARTED}$"):
            await call.result()
        again = await at.harness.call("navigate_to", x=2.0, y=0.0)
        assert await again.answer() == "On the way to x 2.00 m, y 0.00 m in 'map'"


@pytest.mark.virtual_time
@pytest.mark.parametrize("own", [True, False], ids=["its own", "somebody else's"])
async def test_a_goal_that_a_process_before_has_left_behind_is_ended_and_moves_nothing(own: bool) -> None:
    """Else the robot would drive on to it as soon as the module is there again: nobody waits for it any more."""
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.server.end(GoalStatus.SUCCEEDED, {"error_code": 0, "error_msg": ""})
        await call.closed()
        left = at.server.newest[:8] + bytes(8) if own else bytes(16)
        at.server.obeys = False
        at.server.statuses[left] = GoalStatus.EXECUTING
        at.server.say_status()
        at.wire.deliver("rt/cmd_vel_nav", encode(struct_of(Twist), Twist(linear=Vector3(x=0.5))))
        await asyncio.sleep(1.0)
        assert bool(at.harness.sent("nav_vel")) is not own
        assert (left in at.server.cancelled) is own
        at.server.obeys = True
        await asyncio.sleep(1.0)
        assert (at.server.statuses[left] is GoalStatus.CANCELED) is own


@pytest.mark.virtual_time
async def test_a_goal_goes_on_when_another_server_than_its_own_comes_and_goes() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        for writers in ({"first", "second"}, {"first"}, {"first", "third"}):
            at.wire.writers = frozenset(writers)
            await asyncio.sleep(1.0)
        at.server.end(GoalStatus.SUCCEEDED, {"error_code": 0, "error_msg": ""})
        assert (await call.closed()).outcome is Outcome.COMPLETED


@pytest.mark.virtual_time
@pytest.mark.parametrize("status", [None, GoalStatus.SUCCEEDED], ids=["unknown", "terminated"])
async def test_a_goal_that_its_server_says_it_has_not_got_is_cancelled_no_more(status: GoalStatus | None) -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.server.forget()
        if status is not None:
            at.server.statuses[at.server.newest] = status
        call.cancel()
        assert (await call.closed()).outcome is Outcome.CANCELLED
        await asyncio.sleep(30.0)
        assert len(at.server.cancelled) == 3
        assert at.harness.module.health == "ok"


@pytest.mark.virtual_time
async def test_a_goal_whose_server_comes_back_later_without_it_is_soon_cancelled_no_more() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.server.go()
        with pytest.raises(SkillError, match=r"is gone$"):
            await call.result()
        await asyncio.sleep(20.0)
        at.server.forget()
        at.server.come()
        await asyncio.sleep(20.0)
        assert len(at.server.cancelled) == 3


@pytest.mark.virtual_time
async def test_a_goal_that_is_being_cancelled_is_not_taken_for_one_that_has_ended() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.server.statuses[at.server.newest] = GoalStatus.CANCELING
        at.server.say_status()
        call.cancel()
        await at.health("/navigate_to_pose does not end a goal that was cancelled: the robot may go on")
        await until(lambda: len(at.server.cancelled) > 20, 30.0)


@pytest.mark.virtual_time
async def test_answers_to_others_do_not_have_a_goal_taken_for_ended() -> None:
    async with world() as at:
        at.server.obeys = False
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        call.cancel()
        while len(at.server.cancelled) < 20:
            at.server.reply_cancelled(CancelAnswer.UNKNOWN_GOAL_ID)
            await asyncio.sleep(0.05)
        at.server.obeys = True
        await until(lambda: at.server.statuses[at.server.newest] is GoalStatus.CANCELED)


_LONG_LEASE_S = 300
"""The lease of robots that nobody has to miss: a machine with too much to do must not have them forgotten."""


@pytest.fixture
def robots(robot_program: Path, *, orderly: bool) -> Iterator[list[FastDdsRobot]]:
    """A robot that ends in an orderly way, or is missed soon, and what a test adds."""
    started = [FastDdsRobot(robot_program, lease_s=_LONG_LEASE_S) if orderly else FastDdsRobot(robot_program)]
    yield started
    for robot in started:
        robot.kill()


@pytest.mark.live
@pytest.mark.parametrize("orderly", [False, True], ids=["killed", "orderly"])
def test_a_goal_of_a_robot_that_is_started_anew_at_once_is_lost(
    robot_program: Path, robots: list[FastDdsRobot], *, orderly: bool
) -> None:
    first = robots[0]
    actions = {"navigate_to": {"action": "navigate_to_pose"}}
    config = {"domain_id": first.domain, "topics": {"odom": "odom"}, "actions": actions, "needed_timeout_s": 30.0}

    def ends_of_actions(wire: Wire) -> int:
        return len([end for end in wire.endpoints() if "/_action/" in end.topic])

    async def restart(wire: Wire) -> None:
        of_one = ends_of_actions(wire)
        if not orderly:
            first.vanish()
        second = partial(FastDdsRobot, robot_program, beside=first, lease_s=_LONG_LEASE_S)
        robots.append(await asyncio.to_thread(second))
        if orderly:
            await until(lambda: ends_of_actions(wire) >= 2 * of_one, 40)
            first.leave()

    async def scenario() -> None:
        async with ModuleHarness(Ros2Robot, config) as harness:
            await until(lambda: harness.sent("odom"))
            call = await harness.call("navigate_to", x=45.0, y=0.0)
            await call.wait_for(lambda event: event.type == "progress")
            await restart(harness.module._wire)
            with pytest.raises(SkillError, match=f"^{RESTARTED}$"):
                await call.result()
            asked = robots[1].state().cancels
            again = await harness.call("navigate_to", x=0.5, y=0.0)
            assert (await again.closed()).outcome is Outcome.COMPLETED
            assert robots[1].state().cancels == asked

    asyncio.run(scenario())


@pytest.mark.virtual_time
async def test_a_goal_that_its_server_lists_no_more_ends_though_its_end_was_not_heard() -> None:
    """A server forgets ended goals, some at once: else the call would hold the base for its whole time limit."""
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.server.forget()
        at.server.say_status()
        unheard = "^/navigate_to_pose does not list the goal any more: how it ended was not heard$"
        with pytest.raises(SkillError, match=unheard):
            await asyncio.wait_for(call.result(), 30.0)
        assert at.server.cancelled


@pytest.mark.virtual_time
async def test_a_goal_that_is_listed_again_goes_on() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        listed = dict(at.server.statuses)
        at.server.statuses.clear()
        at.server.say_status()
        at.server.statuses |= listed
        at.server.say_status()
        await asyncio.sleep(20.0)
        assert call.texts("close") == []


@pytest.mark.virtual_time
async def test_statuses_that_come_at_once_are_all_read() -> None:
    """A server that forgets a goal as soon as that has ended names its end in the last status but one."""
    async with world() as at:
        asked = at.wire.asked[at.server.channels.status.topic]
        assert asked.latched
        assert asked.depth >= 10
