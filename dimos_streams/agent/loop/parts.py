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

    ``Delegation`` says which of them a sub-agent's loop shares with that of its parent.
    """

    queue: MessageQueue
    model: ModelInUse
    """The model that is asked, with the limits of the loop while it is."""
    transcript: LoopTranscript
    toolbox: Toolbox
    scope: CallScope
    """The loop's part in the calls of the agent."""
    stop_policy: StopPolicy
    oversight: Oversight
