"""The snapshots of an agent at one moment, as operators see it."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.agent.context.entry import Entry
from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.model_watch import ModelWatch
from dimos_streams.agent.policies.gates.gate_state import GateState
from dimos_streams.agent.record.agent_events import EventLog
from dimos_streams.agent.skill_watch import SkillWatch
from dimos_streams.common.readable.shortening import at_most
from dimos_streams.operator.messages.agent import AgentSnapshot, ConversationEntry, MissionView, QueueView

_ENTRIES, _TEXT, _MISSIONS, _CALLS, _SKILLS = 50, 1000, 100, 200, 200


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Takes the snapshots of one agent, from the parts of it that operators see."""

    agent: str
    events: EventLog
    loop: AgentLoop
    gate_state: GateState
    model_watch: ModelWatch
    skill_watch: SkillWatch

    def take(self, *, watched: bool) -> AgentSnapshot:
        """Return the snapshot of the agent now. All events up to its ``number`` are in it; ``watched`` is whether an
        operator's console is there."""
        loop, parts, gate_state = self.loop, self.loop.parts, self.gate_state
        control, robot_hold = parts.oversight.control, parts.oversight.robot_hold
        return AgentSnapshot(
            agent=self.agent,
            utime=clock.utime(),
            number=self.events.last_number,
            state=loop.state.value,
            mode=control.mode.value,
            paused_for=at_most(control.paused_for, _TEXT),
            hold=robot_hold.shown,
            waiting_calls=control.waiting[:_CALLS],
            model=parts.model.name,
            retry=self.model_watch.retry,
            usage=self.model_watch.spent,
            queue=QueueView(waiting=len(parts.queue), capacity=parts.queue.capacity),
            iteration=loop.iteration,
            missions=tuple(_mission(mission) for mission in list(loop.missions.values())[-_MISSIONS:]),
            calls=tuple(call.call_id for call in parts.scope.calls.known.open[-_CALLS:]),
            approvals=tuple(gate_state.approvals.pending()),
            disabled_skills=gate_state.enabled.disabled,
            withheld_skills=gate_state.allowed.withheld(parts.toolbox.catalog.offered)[:_SKILLS],
            warnings=self.skill_watch.warnings,
            conversation=tuple(_entry(entry) for entry in parts.transcript.conversation.newest(_ENTRIES)),
            plan=gate_state.plans.view(),
            on_console_loss=gate_state.approvals.on_console_loss,
            watched=watched,
        )


def _mission(mission: Mission) -> MissionView:
    return MissionView(id=mission.id, text=mission.input[:_TEXT], utime=mission.began_utime)


def _entry(entry: Entry) -> ConversationEntry:
    return ConversationEntry(
        number=entry.event_number,
        role=entry.role,
        text=entry.text[:_TEXT],
        utime=entry.utime,
        skill=entry.skill,
        call_id=entry.call_id,
        is_error=entry.is_error,
        missions=tuple(sorted(entry.missions)),
    )
