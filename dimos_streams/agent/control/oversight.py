"""The operator's hand on all loops of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dimos_streams.agent.calls.open_call import OpenCall, listed
from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.dialogue import Foreground
from dimos_streams.agent.control.heard_stops import HeardStops
from dimos_streams.agent.control.hold_reasons import HoldReasons
from dimos_streams.agent.control.others_calls import OthersCalls
from dimos_streams.agent.control.robot_hold import RobotHold
from dimos_streams.agent.missions.limits import LoopLimits
from dimos_streams.agent.missions.message_queue import MessageQueue
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.tool_stream.gateway import SkillGateway
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory


class Oversight:
    """All that operators have set for an agent and its sub-agents alike, and that holds them and the robot back."""

    def __init__(
        self,
        agent: str,
        emit: Emit,
        queue: MessageQueue,
        gateway: SkillGateway,
        catalog: SkillCatalog,
        *,
        limits: Callable[[], LoopLimits],
        directory: ModuleDirectory | None,
        aborting: Callable[[], bool],
    ) -> None:
        """``limits`` returns those of the agent's own loop, to whose ``queue`` goes what a dialogue has left.
        ``directory`` is as for ``RobotHold``, ``aborting`` as for ``HoldReasons``."""
        self._emit = emit
        self._catalog = catalog
        self.control = Control(emit)
        self.foreground = Foreground(emit, queue.put_nowait)
        self.hold_reasons = HoldReasons(self.control, aborting)
        self.robot_hold = RobotHold(
            agent,
            why=self.hold_reasons.why,
            emit=emit,
            directory=directory,
            bound_s=limits().hold_bound_s,
        )
        self.robot_stops = HeardStops(agent, directory, self.robot_hold.gates)
        self.others = OthersCalls(agent, gateway, catalog, self.control, lambda: limits().abort_bound_s)

    def may_begin_turn(self) -> bool:
        """Return whether an idle loop may take what waits."""
        return self.control.may_begin_turn() and not self.foreground.busy

    def pause_for_unended(self, open_calls: Iterable[OpenCall]) -> None:
        """Pause if open calls that move the robot were asked to end, and nobody waits for that any more."""
        unended = [call for call in open_calls if call.asked_to_end and self._catalog.may_move(call.skill)]
        if unended:
            why = f"{listed(unended)} may still run, and the agent stopped while waiting for the end"
            self.control.pause(why, ordered=False)

    async def hold_for_given_up(self, calls: Sequence[OpenCall]) -> str:
        """Hold the robot if calls that were to end and have not may still move it; return what to say of that."""
        moving = [call for call in calls if self._catalog.may_move(call.skill)]
        if not moving:
            return ""
        self.control.pause(f"{listed(moving)} may still run", ordered=False)
        held = f"the robot is {await self.robot_hold.confirmed()}"
        missions = tuple({mission.id: None for call in moving for mission in call.missions})
        text = f"{listed(moving)} did not end when cancelled and may still run; {held}"
        self._emit(EventKind.NOTE, missions, text=f"{text}; the agent is paused until an operator resumes it")
        return held
