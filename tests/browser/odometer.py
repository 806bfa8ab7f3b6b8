"""Where a robot is and how fast, by what it says on the bus and past the bridge."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Iterator

from dimos_streams.bus import create_bus
from dimos_streams.common.process.live_loop import new_live_loop
from dimos_streams.messages.codec import decode
from dimos_streams.messages.nav_msgs import Odometry

_STANDS = 0.02
"""Metres, or radians, per second."""


class Odometer:
    """The newest that was heard."""

    def __init__(self) -> None:
        self._newest = Odometry()

    @property
    def place(self) -> tuple[float, float]:
        """In metres, in the frame of the odometry."""
        position = self._newest.pose.pose.position
        return position.x, position.y

    @property
    def heading(self) -> float:
        """In degrees to the left of where it faced at its start, less than 360."""
        turned = self._newest.pose.pose.orientation
        return math.degrees(2 * math.atan2(turned.z, turned.w)) % 360

    @property
    def stands(self) -> bool:
        """Whether the robot does not move."""
        twist = self._newest.twist.twist
        return math.hypot(twist.linear.x, twist.linear.y, twist.angular.z) < _STANDS

    def hear(self, channel: str, data: bytes) -> None:
        """Take a message."""
        self._newest = decode(Odometry, data, channel=channel)


@contextlib.contextmanager
def odometer(bus_url: str) -> Iterator[Odometer]:
    """Listens in a thread of its own: the browser's loop has the main one."""
    made, runner, ended = Odometer(), asyncio.Runner(loop_factory=new_live_loop), threading.Event()

    async def listen() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        bus.subscribe("/odom#nav_msgs.Odometry", made.hear)
        await asyncio.to_thread(ended.wait)
        await bus.close()

    def run() -> None:
        with runner:
            runner.run(listen())

    thread = threading.Thread(target=run, name="odometer")
    thread.start()
    try:
        yield made
    finally:
        ended.set()
        thread.join()
