"""The parts of a loop."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.agent.calls.call_scope import CallScope
from dimos_streams.agent.context.transcript import LoopTranscript
from dimos_streams.agent.control.oversight import Oversight
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.missions.message_queue import MessageQueue
from dimos_streams.agent.policies.stop_policy import StopPolicy
from dimos_streams.agent.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """The parts of one loop: its model reacts to what comes from the queue, with what is in the toolbox.

    ``Delegation`` makes those of a sub-agent's loop: it shares oversight with its parent, the model too unless the
    config names one of its own, and has all others for itself.
    """

    queue: MessageQueue
    """The messages that wait for the model: input, updates of calls, notices."""
    model: ModelInUse
    """The model that is asked, with the limits of the loop while it is."""
    transcript: LoopTranscript
    """The events that the loop logs, a sub-agent's in its agent's log too, and the conversation that they make."""
    toolbox: Toolbox
    """All that the model may call: the skills that the reviewer lets be offered, a sub-agent's fewer, and tools."""
    scope: CallScope
    """The calls of the agent that the model may list and end: a sub-agent's those that it has begun or was handed."""
    stop_policy: StopPolicy
    """What ends turns and missions besides limits; a sub-agent has its parent's conditions and one more, and guards
    against repetition of its own."""
    oversight: Oversight
    """What operators have set: pause and steps, dialogues, the hold on the robot."""
