"""The work of one agent: its own loop, those of its sub-agents, and the missions that they work on."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.open_missions import OpenMissions
from dimos_streams.agent.subagents.delegation import Delegation


@dataclass(frozen=True, slots=True)
class AgentWork:
    """All loops of an agent, and its missions while they last."""

    loop: AgentLoop
    """The agent's own."""
    delegation: Delegation
    missions: OpenMissions

    def parts_for(self, missions: tuple[Mission, ...]) -> LoopParts:
        """Return the parts of the loop that works on missions."""
        return self.delegation.parts_of(missions) or self.loop.parts

    async def hear(self, input: OperatorInput) -> None:
        """Give the operator's input to a dialogue, to a sub-agent at work, or to the agent's queue.

        Input that can't wait answers no dialogue: it cuts the turn that holds it.
        """
        queue, foreground = self.loop.parts.queue, self.loop.parts.oversight.foreground
        if input.now:
            if not self.delegation.hear(input):
                self.loop.cut()
                queue.put_nowait(input)
        elif not foreground.take_input(input) and not self.delegation.hear(input):
            await queue.put(input)

    def wake(self) -> None:
        """Let all loops look again, because something may have changed."""
        self.loop.wake()
        self.delegation.wake()

    def unrecorded_offset(self) -> int | None:
        """The oldest offset that a loop has dealt with and that is not in the record yet, or None."""
        offsets = (self.loop.unrecorded_offset(), self.delegation.unrecorded_offset())
        return min((offset for offset in offsets if offset is not None), default=None)
