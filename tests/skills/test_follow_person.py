"""``follow_person`` against a camera that the test holds; the robot itself does not move."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

import pytest

from dimos_streams import clock
from dimos_streams.errors import SkillError, UserError
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.sensor_msgs import CameraInfo, LaserScan
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.follow_run import Following
from dimos_streams.testing import HarnessCall, ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from tests.skills.detections import GREEN, RED, Camera, Seen, frame, odometry

STOP = Twist()


@contextlib.asynccontextmanager
async def following(
    *view: Seen, config: Mapping[str, Any] | None = None, unwired: tuple[str, ...] = ()
) -> AsyncIterator[tuple[ModuleHarness, Camera]]:
    async with ModuleHarness(FollowPerson, config, unwired=unwired) as harness:
        camera = Camera(harness, view)
        task = asyncio.create_task(camera.run())
        if "odom" not in unwired:
            harness.feed("odom", odometry())
        try:
            yield harness, camera
        finally:
            task.cancel()


async def updated(call: HarnessCall, event: str) -> str:
    return (await call.wait_for(lambda e: e.type == "update" and e.data.get("event") == event)).text


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("seen", "forward", "turn"),
    [
        (Seen(at=(3.0, 0.0)), 1, 0),
        (Seen(at=(1.0, 0.0)), -1, 0),
        (Seen(at=(1.8, 0.0)), 0, 0),
        (Seen(at=(2.8, 1.0)), 1, 1),
        (Seen(at=(2.8, -1.0)), 1, -1),
        (Seen(at=None, column=60.0), 0, 1),
        (Seen(at=None, column=260.0), 0, -1),
    ],
)
async def test_keeps_the_distance_and_faces_the_person(seen: Seen, forward: int, turn: int) -> None:
    async with following(seen) as (harness, _):
        call = await harness.call("follow_person", description="the man in red", timeout_s=3.0)
        assert await call.answer() == "Following the man in red"
        await asyncio.sleep(1.0)
        command = harness.sent("cmd_vel")[-1]
        assert _sign(command.linear.x) == forward
        assert _sign(command.angular.z) == turn
        await call.closed()
        assert harness.sent("cmd_vel")[-1] == STOP


def _sign(value: float) -> int:
    return 0 if abs(value) < 0.02 else 1 if value > 0 else -1


@pytest.mark.virtual_time
async def test_ends_with_a_report_when_the_time_is_over() -> None:
    async with following(Seen(at=(2.0, 0.0))) as (harness, _):
        call = await harness.call("follow_person", description="person in red", timeout_s=6.0)
        closed = await call.closed()
        assert closed.data["result"] == {
            "description": "person in red",
            "reason": "timeout",
            "followed_s": 5.9,
            "mean_distance_m": 2.0,
            "lost_times": 0,
            "lost_s": 0.0,
        }
        assert (
            closed.text == "Stopped following person in red: the time is over. Followed for 6 s at 2.0 m on average."
        )


@pytest.mark.virtual_time
async def test_progress_comes_twice_a_second() -> None:
    async with following(Seen(at=(3.0, 1.0))) as (harness, _):
        call = await harness.call("follow_person", description="person in red", timeout_s=10.0)
        await call.closed()
        progress = [event for event in call.events if event.type == "progress"]
        assert 15 <= len(progress) <= 21
        assert progress[-1].data["distance_m"] == pytest.approx(3.16, abs=0.01)
        assert progress[-1].data["bearing_deg"] == pytest.approx(18.4, abs=0.1)
        assert progress[-1].data["speed"] > 0.5
        assert progress[-1].data["track"] == "1"


@pytest.mark.virtual_time
async def test_detectors_learn_what_is_wanted_while_it_runs() -> None:
    async with following(Seen()) as (harness, _):
        call = await harness.call("follow_person", description="person in red", timeout_s=5.0)
        await call.closed()
        sent = harness.sent("wanted_descriptions")
        assert 4 <= len(sent) <= 6
        assert sent[0].data == '["person in red"]'
        await asyncio.sleep(3.0)
        assert len(harness.sent("wanted_descriptions")) == len(sent)


@pytest.mark.virtual_time
async def test_keeps_to_the_track_and_not_to_who_looks_alike() -> None:
    async with following(Seen(at=(2.5, 1.0), id="7")) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=20.0)
        await call.answer()
        camera.view = [Seen(at=(1.5, -1.0), id="8"), Seen(at=(2.5, 1.0), id="7")]
        await asyncio.sleep(1.0)
        assert harness.sent("cmd_vel")[-1].angular.z > 0.2
        # Gone, the other one is 2 m away from where the person was: that is somebody else, for now.
        camera.view = [Seen(at=(1.5, -1.0), id="8")]
        assert "Lost person in red" in await updated(call, "lost")
        assert await updated(call, "found_again") == "Found person in red again"
        assert call.events[-1].data.get("track", "8") == "8"


@pytest.mark.virtual_time
async def test_a_new_track_in_the_same_place_is_the_same_person() -> None:
    async with following(Seen(id="7")) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=8.0)
        await call.answer()
        camera.view = [Seen(label=GREEN, at=(2.0, 0.3), id="9"), Seen(at=(2.2, 0.2), id="8")]
        assert (await call.result())["lost_times"] == 0
        assert [event.data["event"] for event in call.events if event.type == "update"] == ["found"]


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
@pytest.mark.parametrize(
    "stranger", [Seen(label=GREEN, at=(2.4, 0.8), id="1"), Seen(at=(2.5, -9.0), id="1")], ids=["looks", "place"]
)
async def test_a_restarted_detector_that_gives_the_id_to_somebody_else_misleads_nobody(stranger: Seen) -> None:
    async with following(Seen(at=(2.5, 1.0), id="1")) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        camera.state = "silent"
        assert "No new detections" in await updated(call, "frozen")
        camera.state, camera.view = "live", [stranger, Seen(at=(2.5, 1.2), id="2")]
        await asyncio.sleep(1.5)
        assert [event for event in call.events if event.type == "progress"][-1].data["track"] == "2"
        assert harness.sent("cmd_vel")[-1].angular.z > 0.2
        camera.view = [stranger]
        assert "Lost person in red" in await updated(call, "lost")


@pytest.mark.virtual_time
@pytest.mark.parametrize(("wrong", "gap_s"), [(GREEN, 0.0), ("person", 2.0)], ids=["wrong", "vague"])
async def test_a_label_that_is_wrong_for_a_while_or_says_little_loses_nobody(wrong: str, gap_s: float) -> None:
    async with following(Seen(id="1")) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=8.0)
        await call.answer()
        camera.state = "silent" if gap_s else "live"
        await asyncio.sleep(gap_s)
        camera.state, camera.view = "live", [Seen(label=wrong, id="1")]
        await asyncio.sleep(2.0)
        camera.view = [Seen(id="1")]
        assert (await call.result())["lost_times"] == 0


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
async def test_lost_and_found_again() -> None:
    async with following(Seen(at=(2.0, 1.0))) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        camera.view = [Seen(label=GREEN, id="2")]
        assert (await updated(call, "lost")).startswith("Lost person in red: not seen for 1.1 s")
        assert STOP in harness.sent("cmd_vel")
        await asyncio.sleep(0.2)
        searching = harness.sent("cmd_vel")[-1]
        assert searching.linear.x == searching.linear.y == 0.0
        assert searching.angular.z > 0  # to the side where the person was last seen
        camera.view = [Seen(at=(3.0, 0.0), id="5")]
        assert await updated(call, "found_again") == "Found person in red again"
        await asyncio.sleep(0.2)
        assert harness.sent("cmd_vel")[-1].linear.x > 0


@pytest.mark.virtual_time
async def test_lost_for_good_ends_the_call() -> None:
    async with following(Seen()) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        camera.view = []
        closed = await call.closed()
        assert closed.outcome is Outcome.FAILED
        assert closed.text == "Stopped following person in red after 10 s: lost them, not seen for 10 s"
        assert harness.sent("cmd_vel")[-1] == STOP


@pytest.mark.virtual_time
async def test_a_camera_info_without_a_centre_does_not_replace_one_that_has_it() -> None:
    async with following(Seen(at=None, column=60.0)) as (harness, _):
        for centre in (60.0, math.nan):
            harness.feed("camera_info", CameraInfo(K=[200.0, 0.0, centre, 0.0, 200.0, 120.0, 0.0, 0.0, 1.0]))
        call = await harness.call("follow_person", description="person in red", timeout_s=1.0)
        assert (await call.closed()).outcome is Outcome.COMPLETED
        assert all(command.angular.z == 0.0 for command in harness.sent("cmd_vel")), "the centre is 60"


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("B3")
async def test_time_in_which_the_robot_is_held_does_not_count() -> None:
    async with following(Seen()) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=30.0)
        await call.answer()
        harness.feed("hold", Hold(utime=clock.utime(), source="agent", seq=1, hold=True, valid_s=60.0))
        await asyncio.sleep(2)
        assert "held by agent; following person in red" in call.texts("progress")[-1]
        camera.view = []
        await asyncio.sleep(40)
        assert not call.texts("close")
        camera.view = [Seen()]
        harness.feed("hold", Hold(utime=clock.utime(), source="agent", seq=2, hold=False, valid_s=60.0))
        await asyncio.sleep(2)
        assert call.texts("progress")[-1] == "following person in red"
        assert (await call.closed()).outcome is Outcome.COMPLETED


def held(seq: int, hold: bool) -> Hold:
    return Hold(utime=clock.utime(), source="agent", seq=seq, hold=hold, valid_s=60.0)


@pytest.mark.virtual_time
@pytest.mark.parametrize("kept_by", ["a hold", "a frozen camera"])
async def test_nobody_drives_to_where_somebody_was_long_ago(kept_by: str) -> None:
    async with following(Seen(at=(4.0, 0.0))) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        camera.view = []
        if kept_by == "a hold":
            harness.feed("hold", held(1, True))
        else:
            camera.state = "silent"
        await asyncio.sleep(5)
        before = len(harness.sent("cmd_vel"))
        if kept_by == "a hold":
            progress = call.events[-1]
            assert progress.text == "held by agent; looking for person in red"
            assert (progress.data["distance_m"], progress.data["track"]) == (None, None)
            harness.feed("hold", held(2, False))
        camera.state = "live"
        await updated(call, "lost")
        assert {command.linear.x for command in harness.sent("cmd_vel")[before:]} == {0.0}
        camera.view = [Seen(at=(4.0, 0.0))]
        await updated(call, "found_again")
        await asyncio.sleep(0.5)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.5


@pytest.mark.virtual_time
async def test_time_in_which_the_robot_is_held_is_not_said_to_be_followed() -> None:
    async with following(Seen(at=(2.0, 0.0))) as (harness, _):
        call = await harness.call("follow_person", description="person in red", timeout_s=3.0)
        await call.answer()
        harness.feed("hold", held(1, True))
        await asyncio.sleep(20)
        harness.feed("hold", held(2, False))
        closed = await call.closed()
        assert closed.data["result"]["followed_s"] == pytest.approx(3.0, abs=0.3)
        assert "Followed for 3 s" in closed.text


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("view", "text"),
    [
        ([], "Nobody who matches 'person in red' was found, nobody at all in sight"),
        ([Seen(label=GREEN)], f"Nobody who matches 'person in red' was found, only {GREEN} in sight"),
    ],
)
async def test_nobody_matches(view: list[Seen], text: str) -> None:
    async with following(*view) as (harness, _):
        call = await harness.call("follow_person", description="person in red")
        await asyncio.sleep(2.5)
        assert set(map(repr, harness.sent("cmd_vel"))) == {repr(STOP)}
        await asyncio.sleep(1.0)
        assert harness.sent("cmd_vel")[-1].angular.z == 0.7
        with pytest.raises(SkillError) as error:
            await call.answer()
        assert str(error.value) == text
        assert harness.sent("cmd_vel")[-1] == STOP


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
@pytest.mark.parametrize("frozen", ["repeating", "silent"])
async def test_a_frozen_camera_stops_the_robot(frozen: Literal["repeating", "silent"]) -> None:
    async with following(Seen(at=(4.0, 0.0)), config={"give_up_after_s": 5.0}) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        await asyncio.sleep(1.0)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.5
        camera.state = frozen
        assert "No new detections for 1.0 s: standing still" in await updated(call, "frozen")
        frozen_at = len(harness.sent("cmd_vel"))
        await asyncio.sleep(1.0)
        assert set(map(repr, harness.sent("cmd_vel")[frozen_at:])) == {repr(STOP)}
        camera.state = "live"
        assert await updated(call, "unfrozen") == "There are new detections again"
        await asyncio.sleep(1.0)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.5
        reported = [event.data["event"] for event in call.events if event.type == "update"]
        assert reported == ["found", "frozen", "unfrozen"], "each is reported once"
        camera.state = frozen
        closed = await call.closed()
        assert closed.outcome is Outcome.FAILED
        assert "there were no new detections for 5 s" in closed.text
        assert harness.sent("cmd_vel")[-1] == STOP


@pytest.mark.virtual_time
async def test_without_any_frame_it_says_so() -> None:
    async with ModuleHarness(FollowPerson) as harness:
        call = await harness.call("follow_person", description="person in red")
        with pytest.raises(SkillError, match="there were no new detections for 3 s"):
            await call.answer()


@pytest.mark.virtual_time
@pytest.mark.feature("A10")
async def test_needs_nothing_but_detections() -> None:
    optional = ("odom", "scan", "camera_info")
    async with following(Seen(at=(3.0, 0.5)), unwired=optional) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        await asyncio.sleep(1.0)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.5
        camera.view = []
        await updated(call, "lost")
        await asyncio.sleep(0.2)
        assert harness.sent("cmd_vel")[-1].angular.z == 0.7


@pytest.mark.virtual_time
async def test_can_not_do_without_detections() -> None:
    with pytest.raises(UserError, match=r"'detections'.*has no topic"):
        async with ModuleHarness(FollowPerson, unwired=("detections",)):
            pass


@pytest.mark.virtual_time
async def test_searches_to_the_side_of_who_was_seen_without_depth() -> None:
    async with following(Seen(at=None, column=280.0)) as (harness, camera):
        call = await harness.call("follow_person", description="person in red")
        await call.answer()
        camera.view = []
        await updated(call, "lost")
        await asyncio.sleep(0.5)
        assert harness.sent("cmd_vel")[-1] == Twist(angular=Vector3(z=-0.7))


@pytest.mark.virtual_time
@pytest.mark.parametrize("how", ["cancel", "stop_following"])
async def test_is_ended_by_others(how: str) -> None:
    async with following(Seen(at=(4.0, 0.0))) as (harness, _):
        call = await harness.call("follow_person", description="person in red")
        await call.answer()
        if how == "cancel":
            call.cancel("enough")
        else:
            stop = await harness.call("stop_following")
            assert await stop.answer() == "Stopped following person in red"
        closed = await call.closed()
        reason = "enough" if how == "cancel" else "stop_following was called (by 'test')"
        assert (closed.outcome, closed.text) == (Outcome.CANCELLED, reason)
        assert harness.sent("cmd_vel")[-1] == STOP


@pytest.mark.virtual_time
async def test_stop_following_when_nobody_is_followed() -> None:
    async with following() as (harness, _):
        call = await harness.call("stop_following")
        assert await call.answer() == "Nobody was being followed"
        assert harness.sent("cmd_vel") == [STOP]


@pytest.mark.virtual_time
@pytest.mark.feature("A8")
async def test_an_error_inside_stops_the_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    async with following(Seen(at=(4.0, 0.0))) as (harness, _):
        call = await harness.call("follow_person", description="person in red")
        await call.answer()
        await asyncio.sleep(1.0)
        assert harness.sent("cmd_vel")[-1].linear.x > 0.5
        monkeypatch.setattr(Following, "_follow", lambda self, now: 1 / 0)
        closed = await call.closed()
        assert closed.outcome is Outcome.FAILED
        assert harness.sent("cmd_vel")[-1] == STOP


@pytest.mark.virtual_time
async def test_two_calls_do_not_disturb_each_other() -> None:
    async with following(Seen(), Seen(label=GREEN, at=(3.0, 1.0), id="2")) as (harness, _):
        red = await harness.call("follow_person", description="person in red", timeout_s=5.0)
        green = await harness.call("follow_person", description="person in green", timeout_s=4.0)
        assert await red.answer() == "Following person in red"
        assert (await green.result())["mean_distance_m"] == pytest.approx(3.16, abs=0.01)
        assert (await red.result())["mean_distance_m"] == 2.0
        assert {event.data["label"] for event in red.events if event.type == "update"} == {RED}


@pytest.mark.virtual_time
async def test_who_is_out_of_sight_is_followed_more_and_more_slowly() -> None:
    async with following(Seen(at=(4.0, 0.0)), config={"lost_after_s": 2.0}) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        await asyncio.sleep(1.0)
        assert harness.sent("cmd_vel")[-1].linear.x == pytest.approx(1.0)
        camera.view = []
        speeds = []
        for _ in range(8):
            await asyncio.sleep(0.25)
            speeds.append(harness.sent("cmd_vel")[-1].linear.x)
        assert speeds == sorted(speeds, reverse=True)
        assert 0.4 < speeds[4] < 0.65
        assert speeds[6] < 0.3
        await updated(call, "lost")


@pytest.mark.virtual_time
async def test_who_is_lost_is_looked_for_where_they_were_however_the_robot_has_turned() -> None:
    async with following(Seen(at=(3.0, 0.0))) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        camera.view = []
        await asyncio.sleep(0.5)
        for yaw, sign in ((1.2, -1), (-1.2, 1)):
            harness.feed("odom", odometry(yaw=yaw))
            await asyncio.sleep(0.2)
            assert _sign(harness.sent("cmd_vel")[-1].angular.z) == sign
        await updated(call, "lost")
        harness.feed("odom", odometry(yaw=0.4))
        await asyncio.sleep(0.2)
        facing = harness.sent("cmd_vel")[-1]
        assert (facing.linear, facing.angular.z) == (Vector3(), pytest.approx(-0.8, abs=0.01))
        await asyncio.sleep(2.0)
        assert call.texts("progress")[-1] == "looking for person in red"
        assert abs(harness.sent("cmd_vel")[-1].angular.z) == 0.7, "then it searches"


@pytest.mark.virtual_time
@pytest.mark.parametrize("side", [1.0, -1.0])
async def test_who_walked_across_is_searched_where_they_went(side: float) -> None:
    """Although they were still seen on the other side."""
    async with following(Seen(at=(2.0, -1.0 * side)), config={"look_back_s": 0.0}) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=60.0)
        await call.answer()
        for step in range(12):
            camera.view = [Seen(at=(2.0, side * (-1.0 + 0.07 * step)))]
            await asyncio.sleep(0.1)
        camera.view = []
        await updated(call, "lost")
        await asyncio.sleep(0.3)
        assert harness.sent("cmd_vel")[-1] == Twist(angular=Vector3(z=0.7 * side))


@pytest.mark.virtual_time
async def test_what_is_in_the_way_to_a_person_is_passed() -> None:
    async with following(Seen(at=(4.0, 0.0))) as (harness, _):
        await (await harness.call("follow_person", description="person in red", timeout_s=60.0)).answer()
        for at, wanted in ((math.inf, 0), (0.8, 1), (1.6, 0)):
            ranges = [at if abs(each - 360) <= 12 or each <= 2 else math.inf for each in range(360)]
            scan = LaserScan(angle_increment=math.radians(1), range_min=0.05, range_max=12.0, ranges=ranges)
            harness.feed("scan", scan)
            await asyncio.sleep(0.3)
            command = harness.sent("cmd_vel")[-1].linear
            assert math.hypot(command.x, command.y) == pytest.approx(1.0)
            assert _sign(command.y) == wanted
        await asyncio.sleep(0.6)
        harness.feed("detections", frame(Seen(at=(4.0, 0.0))))
        assert _sign(harness.sent("cmd_vel")[-1].linear.y) == 0


@pytest.mark.virtual_time
async def test_how_often_and_for_how_long_somebody_was_lost_is_reported() -> None:
    async with following(Seen(at=(2.0, 0.0))) as (harness, camera):
        call = await harness.call("follow_person", description="person in red", timeout_s=15.0)
        await call.answer()
        for out_of_sight_s in (3.0, 2.0):
            await asyncio.sleep(1.0)
            camera.view = []
            await asyncio.sleep(out_of_sight_s)
            camera.view = [Seen(at=(2.0, 0.0))]
        await asyncio.sleep(5.0)
        camera.view = []
        closed = await call.closed()
        result = closed.data["result"]
        assert (result["lost_times"], result["mean_distance_m"]) == (3, 2.0)
        # Each time a second is needed to notice; the third time it ends lost.
        assert result["lost_s"] == pytest.approx(2.0 + 1.0 + 1.9, abs=0.5)
        assert f"lost 3 times for {result['lost_s']:.0f} s in all" in closed.text
