"""The limits of the velocity gate, as blueprints set them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dimos_streams.live_settings import Live
from dimos_streams.module import ModuleConfig, OfRobot


class VelocityGateConfig(ModuleConfig):
    """The limits of what may pass. Metres, seconds, radians."""

    max_speed: Annotated[float, Live] = Field(1.0, ge=0.0)
    """The greatest speed in any direction, in m/s."""
    max_turn: Annotated[float, Live] = Field(1.8, ge=0.0)
    """The greatest turning speed, in rad/s."""
    acceleration: float = Field(1.5, gt=0.0)
    """The greatest acceleration, in m/s²."""
    turn_acceleration: float = Field(5.0, gt=0.0)
    """The greatest angular acceleration, in rad/s²."""
    command_timeout_s: float = Field(0.2, gt=0.0, le=0.35)
    """The age, in seconds, from which a command counts as zero."""
    teleop_hold_s: float = Field(0.5, ge=0.0)
    """The time, in seconds, for which skills wait after the last teleop command."""
    scan_timeout_s: float = Field(0.5, gt=0.0)
    """The time, in seconds, without a scan after which the base only turns."""
    robot_radius: Annotated[float, OfRobot] = Field(0.22, gt=0.0)
    """The radius, in metres, of the smallest circle around `base_link` into which the whole robot fits."""
    side_margin: Annotated[float, OfRobot] = Field(0.08, ge=0.0)
    """The distance, in metres, that is kept free at the robot's sides."""
    stop_distance: float = Field(0.25, ge=0.0)
    """The distance, in metres, that is kept free in front of the hull, whichever way the robot moves."""
    unseen_speed: float = Field(0.1, ge=0.0)
    """The greatest speed, in m/s, in directions that the scan does not cover, such as backwards where the lidar looks
    ahead; 0 forbids these directions."""
    braking: float = Field(1.0, gt=0.0)
    """The deceleration, in m/s², that the base is sure to reach when it brakes."""
    reaction_s: float = Field(0.2, ge=0.0)
    """The longest time, in seconds, from a scan or a command until the base obeys it."""
