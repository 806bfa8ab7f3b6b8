"""A module whose inputs bring nothing, or nothing that can be used, says so in its health until they do."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from dimos_streams.bus.memory import MemoryBus
from dimos_streams.messages.codec import encode
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseWithCovariance, Quaternion
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import pose_fault
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module
from dimos_streams.streams import In
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from tests.helpers import until

pytestmark = pytest.mark.virtual_time

HERE = Odometry(pose=PoseWithCovariance(pose=Pose(orientation=Quaternion(w=1.0))))
NOWHERE = Odometry(pose=PoseWithCovariance(pose=Pose(position=Point(x=math.nan))))


class Walker(Module):
    odom: In[Odometry] = In(fault=pose_fault)
    scan: In[LaserScan] = In(required=False)
    notes: In[String]

    @classmethod
    def longest_gaps(cls, config: Any) -> Mapping[str, float]:
        return {"odom": 0.5, "scan": 3.0}


@contextlib.asynccontextmanager
async def walking() -> AsyncIterator[tuple[ModuleHarness, Walker, Callable[[], str]]]:
    """A walker that is hosted, and what others hear of its health."""
    bus = MemoryBus()
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    async with ModuleHarness(Walker, name="walker", bus=bus) as harness:
        await until(lambda: directory.module("walker") is not None)
        assert isinstance(harness.module, Walker)
        yield harness, harness.module, lambda: directory.unwell().get("walker", "ok")
    directory.stop()
    await bus.close()


async def test_an_input_that_falls_silent_is_in_the_health_until_it_is_back() -> None:
    async with walking() as (harness, walker, health):
        harness.feed("odom", HERE)
        harness.feed("scan", LaserScan())
        await asyncio.sleep(1.9)
        assert health() == "ok", "a hitch is nothing for operators"
        await until(lambda: health() == "/odom has been silent for 2 s")
        await until(lambda: health() == "/odom has been silent for 12 s; /scan has been silent for 12 s")
        assert walker.health == "ok", "which is the module's own to say"
        harness.feed("odom", HERE)
        harness.feed("scan", LaserScan())
        await until(lambda: health() == "ok")


async def test_what_never_came_is_missed_after_a_while_if_the_module_needs_it() -> None:
    async with walking() as (harness, _, health):
        await asyncio.sleep(4.5)
        assert health() == "ok", "robots may begin late"
        await until(lambda: health() == "nothing has come on /odom for 6 s")
        harness.feed("odom", HERE)
        await until(lambda: health() == "ok")


async def test_what_comes_and_can_not_be_used_is_named_with_the_reason() -> None:
    async with walking() as (harness, walker, health):
        sending = asyncio.create_task(send(harness, NOWHERE))
        await until(lambda: health() == "what comes on /odom can't be used: its position is not a number")
        sending.cancel()
        await until(lambda: health().startswith("nothing has come on /odom for "))
        harness.feed("odom", HERE)
        await until(lambda: health() == "ok")
        harness.bus.publish(walker.odom.channel, encode(String(data="no odometry")))
        await until(lambda: health().startswith("what comes on /odom can't be used: its fingerprint is "))


async def test_what_can_not_be_used_is_named_also_where_silence_is_no_fault() -> None:
    async with walking() as (harness, walker, health):
        harness.feed("notes", String(data="a note"))
        await until(lambda: walker.notes.latest is not None)
        sending = asyncio.create_task(send(harness, HERE, to=walker.notes.channel))
        await until(lambda: "what comes on /notes can't be used: its fingerprint is " in health())
        sending.cancel()
        await until(lambda: "/notes" not in health())


async def test_what_the_module_says_itself_comes_first() -> None:
    async with walking() as (_, walker, health):
        walker.health = "its battery is low"
        await asyncio.sleep(10.0)
        assert health() == "its battery is low"


async def send(harness: ModuleHarness, odometry: Odometry, to: str = "/odom#nav_msgs.Odometry") -> None:
    while True:
        harness.bus.publish(to, encode(odometry))
        await asyncio.sleep(0.1)
