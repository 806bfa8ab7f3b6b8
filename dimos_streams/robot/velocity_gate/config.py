"""The limits of the velocity gate, as blueprints set them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dimos_streams.live_settings import Live
from dimos_streams.module import ModuleConfig, OfRobot


class VelocityGateConfig(ModuleConfig):
    """The limits of what may pass. Metres, seconds, radians."""

    max_speed: Annotated[float, Live] = Field(1.0, ge=0.0, description="m/s, in any direction")
    max_turn: Annotated[float, Live] = Field(1.8, ge=0.0, description="rad/s")
    acceleration: float = Field(1.5, gt=0.0, description="m/s²")
    turn_acceleration: float = Field(5.0, gt=0.0, description="rad/s²")
    command_timeout_s: float = Field(0.2, gt=0.0, le=0.35, description="a command older than this is zero")
    teleop_hold_s: float = Field(0.5, ge=0.0, description="skills wait so long after the last teleop command")
    scan_timeout_s: float = Field(0.5, gt=0.0, description="without a scan for so long the base only turns")
    robot_radius: Annotated[float, OfRobot] = Field(0.22, gt=0.0, description="m, of the circle that the robot fills")
    side_margin: Annotated[float, OfRobot] = Field(0.08, ge=0.0, description="kept free at the robot's sides, m")
    stop_distance: float = Field(0.25, ge=0.0, description="kept free before the hull, m")
    unseen_speed: float = Field(0.1, ge=0.0, description="m/s, where no ray was measured; 0 to go nowhere unseen")
    """The limit for ways into which no ray of the scan was measured, as behind a lidar that looks ahead."""
    braking: float = Field(1.0, gt=0.0, description="deceleration that the base surely has, m/s²")
    reaction_s: float = Field(0.2, ge=0.0)
    """The age that a scan or a command may have by the time the base obeys."""
