"""What ends the turns of a loop and its missions, besides the limits that come with its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dimos_streams.agent.missions.stop_conditions import RobotState, StopCondition
from dimos_streams.agent.policies.repetition import RepetitionGuard
from dimos_streams.agent.policies.runaway import RunawayGuards


@dataclass(slots=True, kw_only=True)
class StopPolicy:
    """The conditions that a loop looks at between answers, and its guards against a model that goes round in
    circles."""

    conditions: tuple[StopCondition, ...]
    robot: Callable[[], RobotState]
    """Gives the state of the robot that conditions see."""
    guards: RunawayGuards
    """The guards of missions, over all their turns."""
    new_repetition: Callable[[], RepetitionGuard]
    """Makes the guard of each turn: after a new message from outside, repeating is reasonable again."""

    def for_sub_agent(self, condition: StopCondition) -> StopPolicy:
        """Return the policy of a sub-agent: the same, and one more condition. Its missions have guards of their
        own."""
        return StopPolicy(
            conditions=(*self.conditions, condition),
            robot=self.robot,
            guards=RunawayGuards(self.guards.new),
            new_repetition=self.new_repetition,
        )
