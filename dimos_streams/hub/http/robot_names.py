"""The robot that a request is about, in its query or in its path."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from dimos_streams.fleet.protocol import ROBOT_NAME
from dimos_streams.hub.http.refusing import bounded_read
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.robots import UnknownFleetRobotError
from dimos_streams.hub.threads import in_thread

OfRobot = Annotated[str | None, Query(pattern=ROBOT_NAME, description="The name of the robot that is meant.")]
RobotPath = Annotated[str, Path(pattern=ROBOT_NAME)]


async def check_robot(parts: HubParts, robot: str | None) -> None:
    """Raise ``ProblemError`` for a robot of which there is nothing to read, as there is of one that was removed.
    None is none in particular."""
    if robot is not None:
        async with bounded_read():
            try:
                await parts.robots.find(robot)
            except UnknownFleetRobotError:
                if not await in_thread(parts.threads.pages, parts.storage.robots.has_shipped, robot):
                    raise
