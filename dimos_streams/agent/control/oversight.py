"""The operator's hand on all loops of an agent."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.dialogue import Foreground
from dimos_streams.agent.control.others_calls import OthersCalls
from dimos_streams.agent.control.robot_hold import RobotHold


@dataclass(frozen=True, slots=True)
class Oversight:
    """What operators have set and see to, for an agent and its sub-agents alike."""

    control: Control
    foreground: Foreground
    robot_hold: RobotHold
    others: OthersCalls
    """The calls of others that may move the robot."""

    def may_begin_turn(self) -> bool:
        """Return whether an idle loop may take what waits."""
        return self.control.may_begin_turn() and not self.foreground.busy
