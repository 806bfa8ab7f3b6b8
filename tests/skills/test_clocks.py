"""Skills where stamps can't be trusted: single wrong ones, clocks that are set, machines whose clocks differ."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator

import pytest

from dimos_streams.module import Module
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.observe import Observe
from dimos_streams.testing import HarnessCall, ModuleHarness
from tests.skills.detections import GREEN, RED, Camera, Seen, StampClock, frame, odometry

HOUR = 3_600_000_000
DAY = 24 * HOUR


@contextlib.asynccontextmanager
async def robot(module: type[Module], *, detector: StampClock, base: StampClock) -> AsyncIterator[ModuleHarness]:
    """A person 3 m ahead in every picture, and odometry, with stamps of the given clocks."""

    async def feed_odometry() -> None:
        while True:
            harness.feed("odom", odometry(utime=base.utime()))
            await asyncio.sleep(0.05)

    async with ModuleHarness(module) as harness:
        camera = Camera(harness, [Seen(at=(3.0, 0.0))], clock=detector)
        tasks = [asyncio.create_task(camera.run()), asyncio.create_task(feed_odometry())]
        await asyncio.sleep(0.5)
        try:
            yield harness
        finally:
            for task in tasks:
                task.cancel()


def trouble(call: HarnessCall) -> list[object]:
    return [event.data["event"] for event in call.events if event.data.get("event") in ("frozen", "lost")]


async def follow_through(harness: ModuleHarness, happen: StampClock | None = None, off_us: int = 0) -> HarnessCall:
    """Follow for 20 s, and set a clock after 5."""
    call = await harness.call("follow_person", description="person in red", timeout_s=20.0)
    await asyncio.sleep(5.0)
    if happen is not None:
        happen.off_us += off_us
    closed = await call.closed()
    assert closed.data["result"]["reason"] == "timeout"
    return call


def moves(harness: ModuleHarness) -> float:
    """The mean speed of the last seconds' commands, before the one that stops."""
    speeds = [command.linear.x for command in harness.sent("cmd_vel")[-60:-2]]
    return math.fsum(speeds) / len(speeds)


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("A8")
@pytest.mark.parametrize("off_us", [15_000_000, HOUR, 400 * DAY, -HOUR])
async def test_one_stamp_that_cannot_be_changes_nothing(off_us: int) -> None:
    clock = StampClock()
    async with robot(FollowPerson, detector=clock, base=clock) as harness:
        call = await harness.call("follow_person", description="person in red", timeout_s=20.0)
        await asyncio.sleep(5.0)
        for _ in range(3):
            harness.feed("detections", frame(Seen(at=(3.0, 0.0)), utime=clock.utime() + off_us))
            harness.feed("odom", odometry(50.0, 50.0, utime=clock.utime() + off_us))
            await asyncio.sleep(1.02)
        assert (await call.closed()).data["result"]["reason"] == "timeout"
        assert trouble(call) == []
        assert moves(harness) == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("A8")
@pytest.mark.parametrize("off_us", [-HOUR, -3_000_000, HOUR, 400 * DAY])
async def test_following_goes_on_while_the_clocks_of_all_are_set(off_us: int) -> None:
    clock = StampClock()
    async with robot(FollowPerson, detector=clock, base=clock) as harness:
        call = await follow_through(harness, clock, off_us)
        assert trouble(call) == []
        assert moves(harness) == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.feature("A8")
@pytest.mark.parametrize("off_us", [-DAY, DAY])
async def test_following_works_with_a_detector_whose_clock_is_a_day_off(off_us: int) -> None:
    async with robot(FollowPerson, detector=StampClock(off_us), base=StampClock()) as harness:
        call = await follow_through(harness)
        assert trouble(call) == []
        assert moves(harness) == pytest.approx(1.0, abs=0.1)


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
@pytest.mark.parametrize("off_us", [-DAY, 0, DAY])
@pytest.mark.parametrize("whole_robot", [True, False])
async def test_looks_anew_by_the_camera_s_own_clock(off_us: int, whole_robot: bool) -> None:
    """Neither a picture from before the call, which comes late, nor one of next year is an answer to it."""
    clock = StampClock(off_us)
    async with ModuleHarness(Observe) as harness:
        for _ in range(10):
            harness.feed("detections", frame(Seen(label=GREEN), utime=clock.utime()))
            harness.feed("odom", odometry(utime=(clock if whole_robot else StampClock()).utime()))
            await asyncio.sleep(0.1)
        call = await harness.call("observe")
        harness.feed("detections", frame(Seen(label=GREEN), utime=clock.utime() - 50_000))
        await asyncio.sleep(0.05)
        harness.feed("detections", frame(Seen(label=GREEN), utime=clock.utime() + 400 * DAY))
        await asyncio.sleep(0.05)
        harness.feed("detections", frame(Seen(label=RED), utime=clock.utime()))
        assert RED in await call.answer()
        assert (await call.result())["utime"] == clock.utime()
