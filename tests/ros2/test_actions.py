"""Actions of ROS as skills, in virtual time, against a server that does what each test says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.ros2.actions.types import ActionChannels, GoalStatus
from dimos_streams.ros2.cdr import encode
from dimos_streams.ros2.deafness import DEAF_S, MUTE_S, Deafness
from dimos_streams.ros2.definitions import NAVIGATE_TO_POSE, known_action
from dimos_streams.ros2.layout import struct_of
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.ros2.action_world import GRIP, World, nav_feedback, world

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("G4")]

ANEW = "somebody in DDS is back, and has not announced any topic for 5 s: DDS is entered anew"


async def test_a_goal_is_a_call_that_answers_reports_and_ends() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.5, y=-2.0, heading_deg=90.0)
        assert await call.answer() == "On the way to x 1.50 m, y -2.00 m in 'map'"
        pose = at.server.goals[at.server.newest]["pose"]
        assert pose["header"]["frame_id"] == "map"
        assert (pose["pose"]["position"]["x"], pose["pose"]["position"]["y"]) == (1.5, -2.0)
        assert pose["pose"]["orientation"]["z"] == pytest.approx(0.5**0.5)
        at.server.feedback(nav_feedback(3.0), goal=bytes(16))  # somebody else's
        await asyncio.sleep(0.5)
        assert call.texts("progress") == []
        at.server.feedback(nav_feedback(2.25))
        event = await call.wait_for(lambda event: event.type == "progress")
        assert event.text == "2.2 m to go, about 4 s"
        assert event.data["feedback"]["distance_remaining"] == 2.25
        at.server.end(GoalStatus.SUCCEEDED, {"error_code": 0, "error_msg": ""})
        assert await call.result() == {"x": 1.5, "y": -2.0, "heading_deg": 90.0, "frame": "map"}
        assert at.server.cancelled == []


async def test_cancelling_the_call_cancels_the_goal() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        call.cancel("enough")
        closed = await call.closed()
        assert (closed.outcome, closed.text) == (Outcome.CANCELLED, "enough")
        assert at.server.cancelled == [at.server.newest]
        again = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await again.answer()
        assert len(at.server.goals) == 2


@pytest.mark.slow
async def test_what_a_server_does_not_take_is_one_clear_line() -> None:
    async with world() as at:
        at.server.accepts = False
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        with pytest.raises(SkillError, match=r"^/navigate_to_pose has rejected the goal$"):
            await call.result()
        assert at.server.cancelled == []
        at.server.answers = False
        call = await at.harness.call("navigate_to", x=2.0, y=0.0)
        with pytest.raises(
            SkillError, match=r"^/navigate_to_pose has not answered within 5 s; the goal is taken back"
        ):
            await call.result()
        await until(lambda: at.server.cancelled.count(at.server.newest) >= 9)  # should it come to it after all
        at.server.go()
        call = await at.harness.call("navigate_to", x=3.0, y=0.0)
        nobody = r"^nobody offers the action /navigate_to_pose \(nav2_msgs/action/NavigateToPose\)$"
        with pytest.raises(SkillError, match=nobody):
            await call.result()
        at.server.come()
        at.wire.others.pop(at.server.channels.status.topic)  # as one whose quality is another
        call = await at.harness.call("navigate_to", x=3.0, y=0.0)
        status = "rt/navigate_to_pose/_action/status"
        with pytest.raises(SkillError, match=f"^/navigate_to_pose is there, but {status} does not match: it has"):
            await call.result()
        at.wire.others[at.server.channels.goal.topic] = "dock_msgs::action::dds_::Dock_SendGoal_Request_"
        call = await at.harness.call("navigate_to", x=3.0, y=0.0)
        other = "/navigate_to_pose is there, as dock_msgs/action/Dock, not as nav2_msgs/action/NavigateToPose"
        with pytest.raises(SkillError, match=f"^{other}$"):
            await call.result()
        assert len(at.server.goals) == 2


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"error_code": 203, "error_msg": "no path"}, "has aborted the goal: error_code 203, error_msg no path"),
        (None, "has aborted the goal"),
    ],
)
async def test_a_goal_that_is_aborted_says_why(result: dict[str, Any] | None, text: str) -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        if result is None:  # nobody gives a result
            at.server.statuses[at.server.newest] = GoalStatus.ABORTED
            at.server.say_status()
        else:
            at.server.end(GoalStatus.ABORTED, result)
        with pytest.raises(SkillError, match=f"^/navigate_to_pose {text}$"):
            await call.result()
        closed = await call.closed()
        assert closed.data["result"] == {"action": "/navigate_to_pose", "result": result}


async def test_the_first_end_of_a_goal_counts() -> None:
    """Also if a second server of the name, or a wrong one, goes on to say something else."""
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        for status in (GoalStatus.ABORTED, GoalStatus.EXECUTING, GoalStatus.SUCCEEDED):
            at.server.statuses[at.server.newest] = status
            at.server.say_status()
        with pytest.raises(SkillError, match=r"^/navigate_to_pose has aborted the goal$"):
            await call.result()


async def test_replies_to_others_are_not_taken_for_ones_own() -> None:
    async with world({"grip": GRIP}) as at:
        call = await at.harness.call("grip", width=0.5, forces=[])
        await call.answer()
        theirs = {"held": False, "notes": ["of somebody else"]}
        at.server.reply_accepted(accepted=False)
        at.server.reply_result(GoalStatus.ABORTED, theirs)
        await asyncio.sleep(1.0)
        assert call.texts("close") == []
        at.server.end(GoalStatus.SUCCEEDED, {"held": True, "notes": []})
        at.server.reply_result(GoalStatus.ABORTED, theirs)
        assert (await call.result())["result"] == {"held": True, "notes": []}


async def test_a_rejection_of_somebody_elses_goal_is_not_taken_for_one_of_ones_own() -> None:
    async with world() as at:
        at.server.answers = False
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await until(lambda: at.server.goals)
        at.server.reply_accepted(accepted=False)
        await asyncio.sleep(0.1)
        at.server.statuses[at.server.newest] = GoalStatus.EXECUTING
        at.server.say_status()
        assert await call.answer() == "On the way to x 1.00 m, y 0.00 m in 'map'"


async def test_a_call_that_is_cancelled_closes_when_its_goal_has_ended() -> None:
    async with world() as at:
        at.server.obeys = False
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        call.cancel()
        await asyncio.sleep(0.7)
        assert call.texts("close") == []
        at.server.obeys = True
        await call.closed()
        assert at.server.statuses[at.server.newest] is GoalStatus.CANCELED


async def test_a_robot_that_is_held_still_loses_its_goal_and_gets_it_again_when_it_is_let_go() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.hold(on=True)
        await until(lambda: at.server.statuses[at.server.newest] is GoalStatus.CANCELED)
        await call.wait_for(lambda event: event.text == "the robot is held still: waiting")
        assert len(at.server.goals) == 1
        at.hold(on=False)
        await until(lambda: len(at.server.goals) == 2)
        at.server.end(GoalStatus.SUCCEEDED, {"error_code": 0, "error_msg": ""})
        assert (await call.closed()).outcome is Outcome.COMPLETED


async def test_a_goal_whose_server_answers_late_is_cancelled_as_soon_as_the_robot_is_held() -> None:
    async with world() as at:
        at.server.answers = False
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await until(lambda: at.server.goals)
        await asyncio.sleep(0.1)
        at.hold(on=True)
        began = clock.monotonic()
        await until(lambda: at.server.cancelled)
        assert clock.monotonic() - began < 0.05
        await asyncio.sleep(7.0)  # the server is still busy when the wait for the answer would be over
        at.server.reply_accepted(accepted=True)
        at.server.statuses[at.server.newest] = GoalStatus.EXECUTING
        at.server.say_status()
        await until(lambda: at.server.statuses[at.server.newest] is GoalStatus.CANCELED, 1.0)
        assert len(at.server.goals) == 1
        assert "On the way to x 1.00 m, y 0.00 m in 'map'" not in call.texts("update")
        asked = len(at.server.cancelled)
        await asyncio.sleep(2.0)
        assert len(at.server.cancelled) == asked, "an end that was seen is asked for no more"
        at.server.answers = True
        at.hold(on=False)
        await until(lambda: len(at.server.goals) == 2)
        assert await call.answer() == "On the way to x 1.00 m, y 0.00 m in 'map'"


@pytest.mark.parametrize("bar", ["hold", "blind"])
async def test_nothing_is_sent_to_a_server_that_comes_while_the_robot_is_held_or_blind(bar: str) -> None:
    async with world() as at:
        at.server.go()
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await asyncio.sleep(0.5)
        if bar == "hold":
            at.hold(on=True)
        at.sees = bar == "hold"
        await asyncio.sleep(1.2)
        at.server.come()
        await asyncio.sleep(10.0)
        assert at.server.goals == {}
        if bar == "blind":
            with pytest.raises(SkillError, match=r"^/odom can't be heard: nothing was begun$"):
                await call.result()
            return
        assert call.texts("close") == []
        at.hold(on=False)
        await until(lambda: at.server.goals)
        await call.answer()


async def test_of_two_goals_that_wait_for_their_server_the_first_is_sent_and_the_second_refused() -> None:
    async with world({"grip": GRIP}) as at:
        at.server.go()
        first = await at.harness.call("grip", width=0.25, forces=[])
        await asyncio.sleep(0.2)
        second = await at.harness.call("grip", width=0.75, forces=[])
        with pytest.raises(SkillError, match=r"^/arm/grip has a goal of this module already$"):
            await second.result()
        at.server.come()
        await first.answer()
        assert [goal["width"] for goal in at.server.goals.values()] == [0.25]
        at.server.end(GoalStatus.SUCCEEDED, {"held": True, "notes": []})
        await first.result()
        third = await at.harness.call("grip", width=0.75, forces=[])
        await third.answer()
        assert len(at.server.goals) == 2
        assert at.server.cancelled == []


async def test_a_goal_without_an_answer_is_cancelled_when_a_server_that_was_away_is_back() -> None:
    async with world() as at:
        at.server.obeys = False
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.server.go()
        with pytest.raises(SkillError, match=r"^the action server of /navigate_to_pose is gone$"):
            await call.result()
        await asyncio.sleep(5.0)
        at.server.obeys = True
        at.server.cancelled.clear()
        at.server.come()
        await until(lambda: at.server.statuses[at.server.newest] is GoalStatus.CANCELED, 2.0)


async def test_a_robot_that_will_hear_nothing_any_more_fails_instead_of_being_deaf() -> None:
    async with world() as at:
        at.wire.deaf = True
        await until(at.harness.failed, 1.0)
        assert str(at.harness.failed()) == "DDS is read no more"


async def test_a_needed_topic_that_falls_silent_while_its_writer_is_there_has_dds_entered_anew() -> None:
    async with world() as at:
        at.sees = False
        await asyncio.sleep(DEAF_S - 1.0)
        assert at.harness.failed() is None
        await until(at.harness.failed, 2.0)
        said = "/odom is there, and nothing of it was heard for 30 s: DDS is entered anew"
        assert str(at.harness.failed()) == said


async def test_a_topic_whose_writer_is_gone_is_waited_for() -> None:
    async with world() as at:
        at.sees = False
        odometry = at.wire.others.pop("rt/odom")
        await asyncio.sleep(2 * DEAF_S)
        at.wire.others["rt/odom"] = odometry
        await asyncio.sleep(DEAF_S - 1.0)
        assert at.harness.failed() is None, "it has the same time as before to say something"


async def test_a_robot_that_is_back_and_announces_nothing_has_dds_entered_anew_once_it_is_missed() -> None:
    async with world() as at:
        at.wire.mute_for_s = MUTE_S
        await asyncio.sleep(3.0)
        assert at.harness.failed() is None, (
            "odometry comes: it is somebody else's, as a panel's on a laptop that slept"
        )
        at.sees = False
        at.wire.others.pop("rt/odom")
        await until(at.harness.failed, 3.0)
        assert str(at.harness.failed()) == ANEW


async def test_what_is_missed_while_somebody_is_mute_has_dds_entered_anew_once_no_goal_is_under_way() -> None:
    async with world() as at:
        at.wire.mute_for_s = MUTE_S
        at.wire.mute_on = frozenset({"rt/cmd_vel_nav", at.server.channels.status.topic})
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        velocities = at.wire.others.pop("rt/cmd_vel_nav")
        await asyncio.sleep(5.0)
        assert at.harness.failed() is None, "the goal is ended first"
        at.wire.others["rt/cmd_vel_nav"] = velocities
        at.server.go()
        await until(at.harness.failed, 5.0)
        assert str(at.harness.failed()) == ANEW


async def test_what_ends_while_somebody_else_is_mute_has_dds_not_entered_anew() -> None:
    """The robot would stop for it, for a laptop that woke hours before."""
    async with world() as at:
        at.wire.mute_for_s = MUTE_S
        at.wire.mute_on = frozenset({"rt/rosout", "rt/scan"})
        at.wire.others.pop("rt/cmd_vel_nav")
        at.server.go()
        await asyncio.sleep(10.0)
        assert at.harness.failed() is None


async def test_an_action_that_was_never_there_is_not_taken_for_that_of_somebody_who_is_mute() -> None:
    async with world() as at:
        at.server.go()
        at.wire.mute_for_s, at.wire.mute_on = MUTE_S, frozenset({at.server.channels.status.topic})
        await asyncio.sleep(10.0)
        assert at.harness.failed() is None


async def test_a_goal_is_ended_before_dds_is_left() -> None:
    async with world() as at:
        await (await at.harness.call("navigate_to", x=1.0, y=0.0)).answer()
        at.server.obeys = False
        at.sees = False
        await asyncio.sleep(DEAF_S + 5.0)
        assert at.harness.failed() is None
        assert at.server.cancelled
        await until(at.harness.failed, 60.0)


def test_a_topic_that_was_never_heard_is_silent_for_another_reason() -> None:
    deafness = Deafness()
    assert not any(deafness.deaf(now, ["odom"], {}) for now in (0.0, DEAF_S, 10 * DEAF_S))


async def test_a_goal_ends_when_odometry_or_the_server_is_gone() -> None:
    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.sees = False
        with pytest.raises(SkillError, match=r"^/odom can't be heard: the goal was cancelled$"):
            await call.result()
        assert at.server.statuses[at.server.newest] is GoalStatus.CANCELED
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        with pytest.raises(SkillError, match=r"^/odom can't be heard: nothing was begun$"):
            await call.result()
        at.sees = True
        await until(lambda: not at.harness.module.blind)  # type: ignore[attr-defined]
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        at.server.go()
        with pytest.raises(SkillError, match=r"^the action server of /navigate_to_pose is gone$"):
            await call.result()


async def test_a_server_that_ends_no_goal_is_named_and_asked_again_until_it_does() -> None:
    async with world() as at:
        at.server.obeys = False
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        began = clock.monotonic()
        call.cancel()
        assert (await call.closed()).outcome is Outcome.CANCELLED
        assert clock.monotonic() - began < 2.0
        await at.health("/navigate_to_pose does not end a goal that was cancelled: the robot may go on")
        at.server.obeys = True
        await until(lambda: at.server.statuses[at.server.newest] is GoalStatus.CANCELED)
        await until(lambda: at.harness.module.health == "ok", 5.0)


async def test_a_goal_that_does_not_end_is_named_before_what_does_not_come() -> None:
    async with world() as at:
        at.server.obeys = False
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        call.cancel()
        at.wire.others.pop("rt/cmd_vel_nav")
        await at.health("nobody publishes /cmd_vel_nav")
        await until(lambda: at.harness.module.health.startswith("/navigate_to_pose does not end a goal"))


async def test_a_second_robot_of_the_same_names_is_named() -> None:
    async with world() as at:
        at.wire.writers = frozenset({"first", "other"})
        await at.health("2 publish /odom: unless one has just died, is another robot in this domain?")
        await at.health("2 action servers offer /navigate_to_pose")
        at.wire.writers = frozenset({"other"})
        await at.health("ok")


def test_results_of_navigation_come_through_whatever_the_release() -> None:
    """Cyclone drops what is shorter than it is told, and takes what is longer: its status begins each form."""
    kind = known_action(NAVIGATE_TO_POSE)
    assert kind is not None
    channels = ActionChannels("/navigate_to_pose", kind)
    assert [field.name for field in channels.result.struct.fields] == ["status"]
    jazzy = encode(channels.results[0], {"status": 6, "result": {"error_code": 7, "error_msg": "no path"}})
    iron = encode(channels.results[1], {"status": 6, "result": {"error_code": 7}})
    assert channels.read_result(jazzy) == {"status": 6, "result": {"error_code": 7, "error_msg": "no path"}}
    assert channels.read_result(iron) == {"status": 6, "result": {"error_code": 7}}
    assert channels.read_result(iron[:6])["status"] == 6


@pytest.mark.slow
async def test_what_a_cancelled_goal_commands_moves_nothing_and_its_end_is_asked_for_when_a_cut_is_over() -> None:
    async def navigate(at: World) -> int:
        at.wire.deliver("rt/cmd_vel_nav", encode(struct_of(Twist), Twist(linear=Vector3(x=0.5))))
        await asyncio.sleep(0.05)
        return len(at.harness.sent("nav_vel"))

    async with world() as at:
        call = await at.harness.call("navigate_to", x=1.0, y=0.0)
        await call.answer()
        assert await navigate(at) == 1
        at.server.obeys = False
        at.server.go()  # as far as can be seen from here
        with pytest.raises(SkillError, match="is gone"):
            await call.result()
        await asyncio.sleep(120.0)
        cancelled = len(at.server.cancelled)
        at.server.come()
        assert await navigate(at) == 1
        await until(lambda: len(at.server.cancelled) > cancelled)
        assert await navigate(at) == 1
        at.server.obeys = True
        await until(lambda: at.server.statuses[at.server.newest] is GoalStatus.CANCELED)
        assert await navigate(at) == 2  # of somebody else's goal
