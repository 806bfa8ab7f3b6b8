"""Velocities on their way out to ROS end when nobody means them any more."""

from __future__ import annotations

import asyncio
import math

import pytest

from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.velocities import PARTING_ZEROS
from dimos_streams.ros2.cdr import decode, encode
from dimos_streams.ros2.layout import struct_of
from dimos_streams.ros2.module import Ros2Robot
from dimos_streams.ros2.velocity import VelocityRelay
from dimos_streams.testing import ModuleHarness
from tests.helpers import hold_up, until
from tests.ros2.fake_wire import FakeWire

AHEAD = Twist(linear=Vector3(x=0.4))
ZERO = Twist()


def rest(relay: VelocityRelay, now: float, *, free: bool = True) -> list[Twist]:
    """All that is sent at 20 Hz within two seconds."""
    sent = []
    for tick in range(40):
        at = now + tick * 0.05
        relay.look(at)
        velocity = relay.due(at, free=free)
        if velocity is not None:
            sent.append(velocity)
    return sent


def test_a_velocity_is_sent_once_and_zeros_follow_it_when_no_other_comes() -> None:
    relay = VelocityRelay(0.4)
    relay.command(AHEAD)
    assert relay.due(10.0, free=True) == AHEAD
    assert relay.due(10.39, free=True) is None
    assert rest(relay, 10.4) == [ZERO] * PARTING_ZEROS
    assert not relay.due_zeros


def test_of_several_that_have_piled_up_the_newest_is_sent() -> None:
    relay = VelocityRelay(0.4)
    relay.command(AHEAD)
    relay.command(ZERO)
    assert rest(relay, 10.0) == [ZERO]


def test_a_robot_that_is_blind_gets_zeros_at_once_and_as_long_as_it_is_commanded() -> None:
    relay = VelocityRelay(0.4)
    relay.command(AHEAD)
    relay.due(10.0, free=True)
    assert relay.due(10.05, free=False) == ZERO
    relay.command(AHEAD)
    assert relay.due(10.1, free=False) == ZERO
    relay.command(AHEAD)
    assert relay.due(10.15, free=True) == AHEAD


def test_what_has_piled_up_while_the_module_was_held_up_is_not_obeyed() -> None:
    relay = VelocityRelay(0.4)
    relay.look(10.0)
    relay.command(AHEAD)
    assert relay.due(10.0, free=True) == AHEAD
    relay.command(AHEAD)  # it comes first, before the module looks at the time
    relay.look(13.0)
    assert relay.due(13.0, free=True) == ZERO
    relay.command(AHEAD)
    assert relay.due(13.1, free=True) == ZERO
    relay.look(13.2)
    relay.command(AHEAD)
    assert relay.due(13.21, free=True) == AHEAD


def test_what_is_not_obeyed_takes_none_of_the_zeros_that_are_due() -> None:
    relay = VelocityRelay(0.4)
    relay.look(10.0)
    relay.command(AHEAD)
    assert relay.due(10.0, free=True) == AHEAD
    relay.look(13.0)
    assert relay.due(13.0, free=True) == ZERO
    relay.command(AHEAD)  # it comes after the module has looked at the time
    assert rest(relay, 13.01) == [ZERO] * (PARTING_ZEROS - 1)


@pytest.mark.parametrize("velocity", [AHEAD, Twist(linear=Vector3(x=math.nan))], ids=["blind", "no number"])
def test_a_robot_that_drove_gets_all_zeros_for_a_velocity_that_is_not_obeyed(velocity: Twist) -> None:
    relay = VelocityRelay(0.4)
    relay.command(AHEAD)
    assert relay.due(10.0, free=True) == AHEAD
    relay.command(velocity)
    assert rest(relay, 10.05, free=velocity != AHEAD) == [ZERO] * PARTING_ZEROS


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_a_command_to_stand(value: float) -> None:
    relay = VelocityRelay(0.4)
    relay.command(Twist(angular=Vector3(z=value)))
    assert relay.due(10.0, free=True) == ZERO


class Domain(FakeWire):
    """A domain that knows what had been written when it was left."""

    written: tuple[Twist, ...] = ()

    def velocities(self) -> tuple[Twist, ...]:
        return tuple(decode(struct_of(Twist), data) for topic, data in self.sent if topic == "rt/cmd_vel")

    async def close(self) -> None:
        await super().close()
        self.written = self.velocities()


@pytest.mark.virtual_time
@pytest.mark.parametrize("silent_s", [0.0, 0.5], ids=["while it drives", "while it has zeros to send"])
async def test_a_module_that_ends_sends_all_zeros_before_it_leaves_the_domain(silent_s: float) -> None:
    domain = Domain()

    class Robot(Ros2Robot):
        def wire(self) -> Domain:
            return domain

    async with ModuleHarness(Robot, {"topics": {"odom": "odom", "cmd_vel": "cmd_vel"}}) as harness:
        domain.deliver("rt/odom", encode(struct_of(Odometry), Odometry()))
        harness.feed("cmd_vel", AHEAD)
        await until(domain.velocities)
        await asyncio.sleep(silent_s)
        assert len(domain.velocities()) < PARTING_ZEROS
        ending = asyncio.create_task(harness.module.stop())
        while not ending.done():
            harness.feed("cmd_vel", AHEAD)  # who commands does not know that it ends
            await asyncio.sleep(0.01)
        assert domain.written == (AHEAD, *[ZERO] * PARTING_ZEROS)


@pytest.mark.virtual_time
async def test_a_velocity_that_was_on_its_way_while_the_module_was_held_up_is_not_obeyed() -> None:
    domain = Domain()

    class Robot(Ros2Robot):
        def wire(self) -> Domain:
            return domain

    config = {"topics": {"odom": "odom", "cmd_vel": "cmd_vel"}, "needed_timeout_s": 60.0}
    async with ModuleHarness(Robot, config) as harness:
        domain.deliver("rt/odom", encode(struct_of(Odometry), Odometry()))
        harness.feed("cmd_vel", AHEAD)
        await until(domain.velocities)
        harness.feed("cmd_vel", AHEAD)
        hold_up(1.0)
        await until(lambda: len(domain.velocities()) > PARTING_ZEROS)
        assert domain.velocities() == (AHEAD, *[ZERO] * PARTING_ZEROS)
