"""One call of a skill that is an action of ROS: its goal from the beginning to the end, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.ros2.actions.client import ActionClient
from dimos_streams.ros2.actions.goal import ActionGoal
from dimos_streams.ros2.actions.goal_values import scalars, shown
from dimos_streams.ros2.actions.types import GoalStatus
from dimos_streams.skill import Call

PROGRESS_S = 0.2
_LOOK_S = 0.1
_UNLISTED_S = 5.0
"""A goal that was accepted is named by the status topic within this time, or it was somebody else's that was. One
that is named no more for this time has ended, as servers forget what has."""


class Robot(Protocol):
    """The protocol of what a goal has to know of the robot that it moves."""

    @property
    def held(self) -> bool:
        """True if somebody holds it still."""

    @property
    def blind(self) -> str:
        """The reason why its place can't be seen; empty if it can."""


@dataclass(frozen=True, slots=True)
class ActionReport:
    """The result of a goal that has ended, None where that can't be had."""

    action: str
    result: Any

    def __str__(self) -> str:
        found = scalars(self.result or {})
        return f"{self.action} has succeeded{f': {found}' if found else ''}"


class ActionRun:
    """One call; ``run`` may be used once."""

    def __init__(
        self,
        client: ActionClient,
        call: Call,
        robot: Robot | None,
        *,
        resumes: bool = False,
        describe: Callable[[dict[str, Any]], str] = scalars,
    ) -> None:
        """``robot`` is None for an action that moves nothing. The goal of one that ``resumes`` is sent again when a
        robot that was held still is let go; others end when it is held. ``describe`` says a feedback to people."""
        self._client, self._call, self._robot = client, call, robot
        self._resumes, self._describe = resumes, describe
        self._answered = False
        self._reported_at: float | None = None

    async def run(self, values: dict[str, Any], doing: str) -> ActionReport:
        """Send the goal, follow it to its end and report its result.

        Raises ``SkillError`` if it does not succeed, with the same report if the goal has ended. Cancelled, or in
        trouble, it asks for the goal's end.
        """
        while True:
            await self._until_free()
            goal = await self._client.send(values, self._barred)
            if goal is None:
                continue
            try:
                if not self._barred():
                    await self._answer(doing)
                ended = await self._follow(goal)
                if ended:
                    return await self._outcome(goal)
            except BaseException:
                await self._client.cancel(goal)
                raise
            finally:
                self._client.done(goal)
            if not self._resumes:
                raise SkillError(f"the robot is held still: the goal of {self._client.action} was cancelled")

    def _barred(self) -> bool:
        """Return whether nothing may begin now, and what has begun must end."""
        return self._robot is not None and bool(self._robot.held or self._robot.blind)

    async def _answer(self, doing: str) -> None:
        if not self._answered:
            self._answered = True
            await self._call.update(doing)

    async def _until_free(self) -> None:
        """Wait while somebody holds the robot still."""
        if self._robot is None:
            return
        said = False
        while self._robot.held:
            if not said:
                said = True
                self._call.progress("the robot is held still: waiting")
            await asyncio.sleep(_LOOK_S)
        if blind := self._robot.blind:
            raise SkillError(f"{blind}: nothing was begun")

    async def _follow(self, goal: ActionGoal) -> bool:
        """Follow the goal to its own end, True, or until the robot is held still, False. Raises ``SkillError``."""
        began = clock.monotonic()
        while not goal.status.ended:
            self._report(goal)
            if self._robot is not None and self._robot.held:
                await self._client.cancel(goal)
                return goal.status in (GoalStatus.SUCCEEDED, GoalStatus.ABORTED)
            if self._robot is not None and (blind := self._robot.blind):
                raise SkillError(f"{blind}: the goal was cancelled")
            if not self._client.there:
                raise SkillError(f"the action server of {self._client.action} is gone")
            if self._client.lost(goal):
                raise SkillError(f"the action server of {self._client.action} was restarted; the goal is lost")
            if goal.status is GoalStatus.UNKNOWN and clock.monotonic() - began > _UNLISTED_S:
                raise SkillError(f"{self._client.action} does not know the goal that it has accepted")
            if self._client.unlisted_s(goal) > _UNLISTED_S:
                raise SkillError(f"{self._client.action} does not list the goal any more: how it ended was not heard")
            await goal.change(_LOOK_S)
        return True

    def _report(self, goal: ActionGoal) -> None:
        now = clock.monotonic()
        if self._reported_at is not None and now - self._reported_at < PROGRESS_S:
            return
        feedback = goal.take_feedback()
        if feedback is not None:
            self._reported_at = now
            self._call.progress(self._describe(feedback), feedback=shown(feedback))

    async def _outcome(self, goal: ActionGoal) -> ActionReport:
        report = ActionReport(self._client.action, shown(await self._client.result(goal)))
        if goal.status is GoalStatus.SUCCEEDED:
            return report
        what = "has aborted the goal" if goal.status is GoalStatus.ABORTED else "has had the goal cancelled by others"
        why = scalars(report.result or {})
        raise SkillError(f"{report.action} {what}{f': {why}' if why else ''}", result=asdict(report))
