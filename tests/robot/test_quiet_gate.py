"""A velocity gate of which nobody wants anything says nothing: whoever else drives the base is not braked."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.runtime.module_host import ModuleHost

TOPICS = {"skill_vel": "/skill_vel", "hold": "/hold", "cmd_vel": "/cmd_vel"}


@pytest.mark.virtual_time
async def test_neither_an_agents_hold_nor_its_own_end_has_an_idle_gate_brake_the_base() -> None:
    sent: list[bytes] = []
    bus = create_bus("memq://")
    await bus.open()
    bus.subscribe(channel_name("/cmd_vel", Twist), lambda _, data: sent.append(data))
    host, gate = ModuleHost(bus), VelocityGate(name="gate")
    await host.start(gate, TOPICS)
    holding = Hold(utime=clock.utime(), source="agent", seq=1, hold=True, valid_s=60.0)
    bus.publish(channel_name("/hold", Hold), encode(holding))
    await asyncio.sleep(2.0)
    assert gate.logic.holds.sources(clock.monotonic()) == ("agent",)
    await host.stop()
    await asyncio.sleep(0.1)
    await bus.close()
    assert sent == []
