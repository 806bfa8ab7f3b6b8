"""One loop's part in the calls of its agent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.open_call import Deliver, OpenCall
from dimos_streams.agent.missions.mission import Mission, with_parents
from dimos_streams.errors import SkillError, suggest
from dimos_streams.tool_stream.gateway import theirs_to_end


@dataclass(frozen=True, slots=True)
class CallScope:
    """The calls that are in reach of one loop, for its model to list, end and hand over: those that it has begun or
    was handed, and those of its sub-agents at work."""

    calls: CallManager
    """All calls of the agent."""
    owner: Callable[[OpenCall], str]
    """Returns whose a call of the agent is, for models."""
    mission: Mission | None = None
    """The sub-mission that the loop works on; None for the agent's own loop, which reaches all calls of the agent."""
    deliver: Deliver | None = None
    """The receiver of the updates of the calls that the loop begins; None for the agent's queue."""

    def open(self) -> tuple[OpenCall, ...]:
        """The calls in reach, in the order in which they became known."""
        return tuple(call for call in self.calls.known.open if self._reaches(call))

    def find(self, call_id: str) -> OpenCall | None:
        """The call of that id, or None if it is not open or not in reach."""
        return next((call for call in self.open() if call.call_id == call_id), None)

    def may_replace(self, call_id: str) -> bool:
        """Return whether a call of the agent may be ended so that another one takes its place."""
        return self.mission is None or self.find(call_id) is not None

    async def refusal(self, call_id: str) -> SkillError:
        """Return the error for a call that ``find`` does not find; it says whose it is, if it runs."""
        other = next((call for call in self.calls.known.open if call.call_id == call_id), None)
        if other is not None:
            return SkillError(
                f"call {call_id!r} of {other.skill!r} belongs to {self.owner(other)}: yours are those that you"
                " have begun or were handed"
            )
        with contextlib.suppress(SkillError):  # then it is not known whether it runs
            view = await self.calls.open_view(call_id)
            if view is not None and view.caller != self.calls.caller:
                return SkillError(theirs_to_end(view, "call a skill that stops it"))
        running = [call.call_id for call in self.open()]
        listed = ", ".join(running) or "none"
        return SkillError(f"no call with the id {call_id!r} runs{suggest(call_id, running)} (running: {listed})")

    def _reaches(self, call: OpenCall) -> bool:
        return self.mission is None or self.mission in with_parents(call.missions)
