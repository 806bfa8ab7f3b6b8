"""The policy by which a loop stops its turns and missions, besides the limits that come with its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dimos_streams.agent.missions.limits import LoopLimits
from dimos_streams.agent.missions.stop_conditions import RobotState, StopCondition
from dimos_streams.agent.policies.repetition import RepetitionGuard, RepetitionSettings
from dimos_streams.agent.policies.runaway import RunawayGuard, RunawayGuards


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

    @classmethod
    def of_agent(
        cls,
        conditions: tuple[StopCondition, ...],
        repetition: RepetitionSettings,
        robot: Callable[[], RobotState],
        limits: Callable[[], LoopLimits],
    ) -> StopPolicy:
        """Return the policy of an agent's own loop; ``limits`` returns those of that loop."""

        def new_guard() -> RunawayGuard:
            return RunawayGuard(repetition, limits().actions, limits().actions_per_hour)

        return cls(
            conditions=conditions,
            robot=robot,
            guards=RunawayGuards(new_guard),
            new_repetition=partial(RepetitionGuard, repetition),
        )

    def for_sub_agent(self, condition: StopCondition) -> StopPolicy:
        """Return the policy of a sub-agent: the same, and one more condition. Its missions have guards of their
        own."""
        return StopPolicy(
            conditions=(*self.conditions, condition),
            robot=self.robot,
            guards=RunawayGuards(self.guards.new),
            new_repetition=self.new_repetition,
        )
