"""Keeps others from moving a robot while an agent undoes calls on it.

A paused agent releases its hold for an undo. Velocities don't name the call that they come from, so a velocity gate
can't let those of the undo pass alone: other motions have to be kept from beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.common.names import is_near
from dimos_streams.errors import CallRejectedError
from dimos_streams.operator.agents import public_name
from dimos_streams.skill import SkillInfo

_UNDO = "undo"
_ABORT = "abort"
_ROLLBACK = "rollback"


def check_undos(
    call: CallState, module: str, skill: SkillInfo, open_calls: Iterable[CallState], is_agent: Callable[[str], bool]
) -> None:
    """Raise ``CallRejectedError`` for a call that may move a robot while an agent takes calls back there, unless the
    agent itself is behind it. ``module`` is the one that would run it."""
    if not skill.may_move:
        return
    for undo in open_calls:
        agent = undo.module
        if call.caller != agent and takes_back(undo) and is_agent(agent) and is_near(agent, module):
            raise CallRejectedError(
                f"{call.skill!r} may move the robot, and agent {agent!r} takes calls back (call {undo.call_id!r}):"
                " nobody else begins a motion until that is over",
                holder=undo.call_id,
            )


def takes_back(call: CallState) -> bool:
    """Return whether a call of an agent's skill is an order to take calls back."""
    if call.skill == public_name(call.module, _ABORT):
        return bool(call.arguments.get(_ROLLBACK))
    return call.skill == public_name(call.module, _UNDO)
