"""A witness in the process of the simulator, which hears it whatever becomes of any network."""

from __future__ import annotations

import json
from pathlib import Path

from dimos_streams import clock
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.streams import In

_EVERY_S = 0.1


class WatcherConfig(ModuleConfig):
    """Where to write."""

    file: Path


class Watcher(Module):
    """Writes down how fast the robot moves, a line of JSON each."""

    config: WatcherConfig

    odom: In[Odometry]

    _written_at = float("-inf")

    async def start(self) -> None:
        """Begin to write."""
        self._lines = self.config.file.open("a", buffering=1)
        self.odom.on_message(self._take)

    async def stop(self) -> None:
        """Write no more."""
        self._lines.close()

    def _take(self, odometry: Odometry) -> None:
        now = clock.monotonic()
        if now - self._written_at < _EVERY_S:
            return
        self._written_at, twist = now, odometry.twist.twist
        speed, turn = abs(complex(twist.linear.x, twist.linear.y)), abs(twist.angular.z)
        self._lines.write(json.dumps({"at": now, "speed": speed, "turn": turn}) + "\n")
