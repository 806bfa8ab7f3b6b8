"""A module whose topic is there with another type says so."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import PoseStamped, Twist
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.streams import In
from dimos_streams.testing import ModuleHarness
from tests.helpers import until

SAID = (
    "/odom is there, as geometry_msgs.PoseStamped, but walker.odom takes nav_msgs.Odometry: "
    "declare it as In(also=OdometryFromPoses), from dimos_streams.messages.odometry"
)


class Walker(Module):
    odom: In[Odometry]
    notes: In[String] = In(required=False)


async def send_poses(bus: Bus) -> None:
    """Send what the walker does not take, for ever."""
    while True:
        bus.publish(channel_name("/odom", PoseStamped), encode(PoseStamped()))
        bus.publish(channel_name("/notes", Twist), encode(Twist()))
        await asyncio.sleep(0.1)


@pytest.mark.virtual_time
async def test_an_unfed_module_says_once_what_is_there_until_something_comes(
    settled_log: pytest.LogCaptureFixture,
) -> None:
    bus = create_bus("memq://")
    await bus.open()
    async with ModuleHarness(Walker, name="walker", bus=bus) as harness:
        sending = asyncio.create_task(send_poses(bus))
        await asyncio.sleep(4.0)
        assert harness.module.health == "ok"
        await asyncio.sleep(60.0)
        assert harness.module.health == SAID
        assert [record.getMessage() for record in settled_log.records] == [SAID]
        harness.feed("odom", Odometry())
        await asyncio.sleep(0.1)
        assert harness.module.health == "ok"
        sending.cancel()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "unfed input watch"]


@pytest.mark.virtual_time
async def test_a_second_module_of_the_name_says_it_again(settled_log: pytest.LogCaptureFixture) -> None:
    bus = create_bus("memq://")
    await bus.open()
    host = ModuleHost(bus)
    sending = asyncio.create_task(send_poses(bus))
    for _ in range(2):
        settled_log.clear()
        walker = Walker(name="walker")
        await host.start(walker, {"odom": "/odom"})
        await asyncio.sleep(10.0)
        assert walker.health == SAID
        assert [record.getMessage() for record in settled_log.records] == [SAID]
        await host.stop_module(walker, "the test wants it")
    await host.stop()
    sending.cancel()


@pytest.mark.virtual_time
async def test_what_was_found_while_something_else_was_wrong_is_in_the_health_afterwards(
    settled_log: pytest.LogCaptureFixture,
) -> None:
    bus = create_bus("memq://")
    await bus.open()
    async with ModuleHarness(Walker, name="walker", bus=bus) as harness:
        harness.module.health = "its battery is low"
        sending = asyncio.create_task(send_poses(bus))
        await asyncio.sleep(10.0)
        assert harness.module.health == "its battery is low"
        harness.module.health = "ok"
        await asyncio.sleep(20.0)
        assert harness.module.health == SAID
        assert [record.getMessage() for record in settled_log.records] == [SAID]
        harness.feed("odom", Odometry())
        await until(lambda: harness.module.health == "ok")
        sending.cancel()


@pytest.mark.virtual_time
async def test_where_nothing_is_there_or_all_is_well_nothing_is_said(settled_log: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Walker, name="walker") as harness:
        await asyncio.sleep(30.0)
        harness.feed("odom", Odometry())
        await asyncio.sleep(30.0)
        assert harness.module.health == "ok"
    assert settled_log.records == []
