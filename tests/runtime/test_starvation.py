"""A module whose topic is there with another type says so."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import PoseStamped, Twist
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module
from dimos_streams.streams import In
from dimos_streams.testing import ModuleHarness

SAID = (
    "/odom is there, as geometry_msgs.PoseStamped, but walker.odom takes nav_msgs.Odometry: "
    "declare it as In(also=OdometryFromPoses), from dimos_streams.messages.odometry"
)


class Walker(Module):
    odom: In[Odometry]
    notes: In[String] = In(required=False)


@pytest.mark.virtual_time
async def test_a_starving_module_says_once_what_is_there_until_something_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus = create_bus("memq://")
    await bus.open()
    async with ModuleHarness(Walker, name="walker", bus=bus) as harness:

        async def send_poses() -> None:
            while True:
                bus.publish(channel_name("/odom", PoseStamped), encode(PoseStamped()))
                bus.publish(channel_name("/notes", Twist), encode(Twist()))
                await asyncio.sleep(0.1)

        sending = asyncio.create_task(send_poses())
        await asyncio.sleep(4.0)
        assert harness.module.health == "ok"
        await asyncio.sleep(60.0)
        assert harness.module.health == SAID
        assert [record.getMessage() for record in caplog.records] == [SAID]
        harness.feed("odom", Odometry())
        await asyncio.sleep(0.1)
        assert harness.module.health == "ok"
        sending.cancel()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "starvation watch"]


@pytest.mark.virtual_time
async def test_where_nothing_is_there_or_all_is_well_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Walker, name="walker") as harness:
        await asyncio.sleep(30.0)
        harness.feed("odom", Odometry())
        await asyncio.sleep(30.0)
        assert harness.module.health == "ok"
    assert caplog.records == []
