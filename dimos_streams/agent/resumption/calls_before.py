"""The calls of the agent's process before this one: taken over, assigned to their missions, given their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.open_call import CallContext, OpenCall
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.policies.gates.base import Reviewer
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.agent.record.begun_calls import begun_call
from dimos_streams.agent.record.event_data.base import EventData
from dimos_streams.agent.record.event_data.calls import CallOpenData
from dimos_streams.agent.resumption.state import RecordedCall
from dimos_streams.agent.subagents.delegation import Delegation
from dimos_streams.agent.tools.toolbox import Toolbox
from dimos_streams.skill import SkillTraits


class CallsBefore:
    """Brings the calls that a record knows into the agent's own loop."""

    def __init__(
        self,
        calls: CallManager,
        toolbox: Toolbox,
        emit: Emit,
        delegation: Delegation,
        missions: Mapping[str, Mission],
    ) -> None:
        """``toolbox`` is that of the agent's own loop. ``missions`` are those that go on, by id."""
        self._calls = calls
        self._toolbox = toolbox
        self._emit = emit
        self._delegation = delegation
        self._missions = missions

    def remember_closed(self, closed: Mapping[str, tuple[str, ...]]) -> None:
        """Remember calls of which nothing is delivered any more, because their close is in the record, each with the
        sub-agents whose lists it was held to."""
        reviewers = {call_id: self._held_to(agents) for call_id, agents in closed.items()}
        self._calls.memory.remember_recorded(reviewers)

    def open_calls(self, recorded: Iterable[RecordedCall]) -> list[OpenCall]:
        """Return recorded calls as open ones."""
        return [
            OpenCall(
                call.call_id,
                call.skill,
                CallContext(self._missions_of(call), reviewer=self._held_to(call.agents)),
                last_seq=call.last_seq,
                arguments=call.arguments or {},
                arguments_known=call.arguments is not None,
            )
            for call in recorded
        ]

    def claim(self, adopted: Iterable[OpenCall], unanswered: Iterable[RecordedCall]) -> list[OpenCall]:
        """Assign calls that the dead agent had asked for without hearing their ids to its missions; return the
        others."""
        left = list(adopted)
        # Of two that are alike, the narrower list holds.
        for asked in sorted(unanswered, key=lambda each: -len(each.agents)):
            if asked.arguments is None or asked.call_id:
                continue
            for call in left:
                if (call.skill, dict(call.arguments)) == (asked.skill, dict(asked.arguments)) and not call.parent:
                    call.resume(self._missions_of(asked), self._held_to(asked.agents))
                    asked.call_id = call.call_id
                    self._note_begun(asked)
                    left.remove(call)
                    break
        return left

    def give_results(self, unanswered: Iterable[RecordedCall]) -> None:
        """Give results to what a model has asked for and what has none."""
        for call in unanswered:
            self._emit(
                EventKind.RESULT,
                call.missions,
                **_whose(call),
                text=_fate(call),
                tool_call_id=call.tool_call_id,
                skill=call.skill,
                call_id=call.call_id,
                is_error=not call.call_id,
                event=None,
            )

    def _note_begun(self, call: RecordedCall) -> None:
        """Write down a call whose begin the dead agent could not record any more."""
        traits = self._toolbox.catalog.all.get(call.skill) or SkillTraits()
        begun = begun_call(
            call.skill,
            traits,
            call.arguments or {},
            call_id=call.call_id,
            tool_call_id=call.tool_call_id,
            agents=call.agents,
        )
        data: CallOpenData = {**_whose(call), **begun}
        self._emit(EventKind.CALL_OPEN, call.missions, **data)

    def _held_to(self, agents: tuple[str, ...]) -> Reviewer | None:
        """The judge of what a call goes on with that a sub-agent has begun; None for the agent's own."""
        return self._delegation.held_to(agents, self._toolbox) if agents else None

    def _missions_of(self, call: RecordedCall) -> tuple[Mission, ...]:
        return tuple(self._missions[id] for id in call.missions if id in self._missions)


def _whose(call: RecordedCall) -> EventData:
    return {"sub": call.sub} if call.sub else {}


def _fate(call: RecordedCall) -> str:
    if call.call_id:
        return f"The agent was restarted. Call {call.call_id} was begun; what it has to say will be reported."
    if call.arguments is None:
        return "not run: the agent was restarted before"
    return "The agent was restarted while this was under way; it is not known how far it came. It does not run now."
