"""The parts of a loop: those that all loops of an agent share, and those that each has of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.call_scope import CallScope
from dimos_streams.agent.calls.open_call import Deliver
from dimos_streams.agent.context.transcript import Transcript
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.missions.limits import LoopLimits
from dimos_streams.agent.missions.message_queue import MessageQueue
from dimos_streams.agent.missions.stop_conditions import RobotState, StopCondition
from dimos_streams.agent.policies.repetition import RepetitionGuard
from dimos_streams.agent.policies.runaway import RunawayGuards
from dimos_streams.agent.tools.toolbox import Toolbox
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.tool_stream.gateway import CallView


@dataclass(slots=True, kw_only=True)
class SharedParts:
    """The parts that an agent's own loop shares with those of its sub-agents."""

    control: Control
    calls: CallManager
    robot: Callable[[], RobotState]
    """Gives the state of the robot that stop conditions see."""
    may_begin: Callable[[], bool]
    """Tells whether an idle loop may take what waits."""
    confirm_hold: Callable[[], Awaitable[HoldView]]
    """Gives the velocity gates' answer on whether the robot is held."""
    open_motions: Callable[[], Awaitable[Sequence[CallView]]]
    """Gives the open calls of all callers that may move the robot."""
    new_repetition: Callable[[], RepetitionGuard]
    """Makes the guard of each turn: after a new message from outside, repeating is reasonable again."""


@dataclass(slots=True, kw_only=True)
class LoopParts(SharedParts):
    """The parts of one loop: the ``model`` reacts with ``calls`` to what comes from ``queue``.

    Those that stand here are the loop's own."""

    model: ModelInUse
    """The model that is asked, with the limits of the loop while it is. A sub-agent may have its parent's."""
    queue: MessageQueue
    scope: CallScope
    """Those of the calls that its model may list, end and hand over."""
    deliver: Deliver | None = None
    """The receiver of the updates of the calls that this loop begins; None for the agent's queue."""
    transcript: Transcript
    toolbox: Toolbox
    """All that its model may call; the catalog of skills in it is the same for all loops of an agent."""
    guards: RunawayGuards
    conditions: tuple[StopCondition, ...]
    """The conditions under which a turn ends its missions, besides the limits that come with the model."""
    estimates_noted: bool = False
    """True if people know that tokens are estimated."""

    @property
    def limits(self) -> LoopLimits:
        """The limits of the loop; they may be others after each answer, since the model may be."""
        return self.model.limits
