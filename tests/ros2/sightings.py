"""A detector that sees one person, who stands still, wherever the robot is."""

from __future__ import annotations

import asyncio
import math

from dimos_streams.messages.geometry_msgs import Point
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.streams import In, Out
from tests.detected import detection

PERSON = (3.0, 1.0)
"""In the frame of odometry, m."""


class Sightings(Module):
    config: ModuleConfig
    odom: In[Odometry]
    detections: Out[Detection2DArray]

    async def run(self) -> None:
        while True:
            self.detections.publish(sighting(await self.odom.next()))
            await asyncio.sleep(0.1)


def sighting(odom: Odometry) -> Detection2DArray:
    """The person as the robot sees them from where it is."""
    place, turn = odom.pose.pose.position, odom.pose.pose.orientation
    yaw = 2 * math.atan2(turn.z, turn.w)
    dx, dy = PERSON[0] - place.x, PERSON[1] - place.y
    at = Point(x=dx * math.cos(yaw) + dy * math.sin(yaw), y=dy * math.cos(yaw) - dx * math.sin(yaw), z=1.0)
    column = 160.0 - 197.6 * at.y / max(at.x, 0.1)
    seen = detection("person in red", at=(column, 120.0), place=at, header=odom.header)
    found = [seen] if at.x > 0.1 else []
    return Detection2DArray(header=odom.header, detections=found)
