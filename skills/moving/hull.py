"""The room that a robot needs at its sides, for skills that look for ways around what is near."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dimos_streams.module import ModuleConfig, OfRobot

_SPARE = 0.03
"""Metres beyond what the velocity gate keeps free: where a skill is content, the gate does not brake."""


class HullConfig(ModuleConfig):
    """The settings of a robot's hull, which the velocity gate of the robot has too. Metres."""

    robot_radius: Annotated[float, OfRobot] = Field(0.22, gt=0.0)
    """The radius, in metres, of the smallest circle around `base_link` into which the whole robot fits; the same as
    the velocity gate's."""
    side_margin: Annotated[float, OfRobot] = Field(0.08, ge=0.0)
    """The distance, in metres, that is kept free at the robot's sides; the same as the velocity gate's."""

    @property
    def half_width(self) -> float:
        """Half the width of the corridor that a direction needs."""
        return self.robot_radius + (self.side_margin + _SPARE)
