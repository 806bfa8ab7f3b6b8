"""The reasons for which an agent holds its robot still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dimos_streams.agent.calls.open_call import OpenCall, listed
from dimos_streams.agent.loop.states import LoopState
from dimos_streams.agent.record.agent_events import EventKind

if TYPE_CHECKING:
    from dimos_streams.agent.core import AgentCore


def why_held(core: AgentCore) -> str:
    """The reason the robot has to be still; empty if it does not have to."""
    if core.loop.state is LoopState.SETTLING:
        return "an abort is under way"
    if core.stops:
        return "the operator has said stop"
    return "the agent is paused" if core.control.paused else ""


async def on_given_up(core: AgentCore, calls: Sequence[OpenCall]) -> str:
    """Hold the robot if calls that were to end and have not may still move it; return what to say of that."""
    moving = [call for call in calls if core.offers.may_move(call.skill)]
    if not moving:
        return ""
    core.control.pause(f"{listed(moving)} may still run")
    held = f"the robot is {await core.robot_hold.confirmed()}"
    missions = tuple({mission.id: None for call in moving for mission in call.missions})
    text = f"{listed(moving)} did not end when cancelled and may still run; {held}"
    core.events.emit(EventKind.NOTE, missions, text=f"{text}; the agent is paused until an operator resumes it")
    return held
