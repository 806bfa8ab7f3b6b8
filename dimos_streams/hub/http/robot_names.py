"""The robot that a request is about, in its query or in its path."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from dimos_streams.fleet.protocol import ROBOT_NAME

OfRobot = Annotated[str | None, Query(pattern=ROBOT_NAME, description="The name of the robot that is meant.")]
RobotPath = Annotated[str, Path(pattern=ROBOT_NAME)]
