"""Watches a robot on its own machine: prints how fast it moves and whether its gate holds it, a line of JSON each."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import channel_name, decode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.tool_stream.event import STATUS

_EVERY_S = 0.1


async def watch(url: str) -> None:
    """Print until killed."""
    bus = create_bus(url)
    await bus.open()
    shown, state = float("-inf"), ""

    def on_status(channel: str, data: bytes) -> None:
        nonlocal state
        status = decode(ModuleStatus, data, channel=channel)
        if status.module == "gate" and status.instance:
            state = status.state_json

    def on_odometry(channel: str, data: bytes) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < _EVERY_S:
            return
        shown, twist = now, decode(Odometry, data, channel=channel).twist.twist
        speed, turn = abs(complex(twist.linear.x, twist.linear.y)), abs(twist.angular.z)
        line = {"at": now, "speed": speed, "turn": turn, "gate": json.loads(state or "{}")}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    bus.subscribe(STATUS, on_status)
    bus.subscribe(channel_name("/odom", Odometry), on_odometry)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(watch(sys.argv[1]))
