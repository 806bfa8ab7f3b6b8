"""The reasons for which an agent holds its robot still."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from dimos_streams.agent.calls.open_call import OpenCall, listed
from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.robot_hold import RobotHold
from dimos_streams.agent.loop.states import LoopState, StateMachine
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.common.listeners import Listeners


class HoldReasons:
    """Knows why the robot has to be still: an abort, a stop or a pause."""

    def __init__(self, control: Control, machine: StateMachine) -> None:
        """``machine`` has the state of the agent's loop."""
        self._control = control
        self._machine = machine
        self.changed = Listeners[[]]()
        """Called when a stop begins or ends."""
        self._stops = 0
        """The number of stops that are being carried out."""

    def why(self) -> str:
        """The reason the robot has to be still; empty if it does not have to."""
        if self._machine.state is LoopState.SETTLING:
            return "an abort is under way"
        if self._stops:
            return "the operator has said stop"
        return "the agent is paused" if self._control.paused else ""

    @contextlib.contextmanager
    def stopping(self) -> Iterator[None]:
        """Count a stop as being carried out during the block."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, stops: int) -> None:
        self._stops += stops
        self.changed.notify()


def pause_for_unended(control: Control, catalog: SkillCatalog, open_calls: Iterable[OpenCall]) -> None:
    """Pause if open calls that move the robot were asked to end, and nobody waits for that any more."""
    unended = [call for call in open_calls if call.asked_to_end and catalog.may_move(call.skill)]
    if unended:
        why = f"{listed(unended)} may still run, and the agent stopped while waiting for the end"
        control.pause(why, ordered=False)


async def hold_for_given_up(
    control: Control, catalog: SkillCatalog, robot_hold: RobotHold, emit: Emit, calls: Sequence[OpenCall]
) -> str:
    """Hold the robot if calls that were to end and have not may still move it; return what to say of that."""
    moving = [call for call in calls if catalog.may_move(call.skill)]
    if not moving:
        return ""
    control.pause(f"{listed(moving)} may still run", ordered=False)
    held = f"the robot is {await robot_hold.confirmed()}"
    missions = tuple({mission.id: None for call in moving for mission in call.missions})
    text = f"{listed(moving)} did not end when cancelled and may still run; {held}"
    emit(EventKind.NOTE, missions, text=f"{text}; the agent is paused until an operator resumes it")
    return held
