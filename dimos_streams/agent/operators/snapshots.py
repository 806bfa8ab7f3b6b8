"""The snapshot of an agent at one moment, as operators see it."""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.agent.context.conversation import Entry
from dimos_streams.agent.core import AgentCore
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.operator.messages.agent import AgentSnapshot, ConversationEntry, MissionView, QueueView

_ENTRIES, _TEXT, _MISSIONS, _CALLS, _SKILLS = 50, 1000, 100, 200, 200


def snapshot(core: AgentCore, *, watched: bool) -> AgentSnapshot:
    """Return the snapshot of the agent now. All events up to ``number`` are in it."""
    loop = core.loop
    return AgentSnapshot(
        agent=core.name,
        utime=clock.utime(),
        number=core.events.last_number,
        state=loop.state.value,
        mode=core.control.mode.value,
        hold=core.robot_hold.shown,
        waiting_calls=core.control.waiting[:_CALLS],
        model=core.model.name,
        retry=core.retry_watch.retry,
        usage=core.spent,
        queue=QueueView(waiting=len(core.queue), capacity=core.queue.capacity),
        iteration=loop.iteration,
        missions=tuple(_mission(mission) for mission in list(loop.missions.values())[-_MISSIONS:]),
        calls=tuple(call.call_id for call in core.calls.open[-_CALLS:]),
        approvals=tuple(core.books.approvals.pending()),
        disabled_skills=core.books.enabled.disabled,
        withheld_skills=core.withheld[:_SKILLS],
        warnings=core.skill_watch.warnings,
        conversation=tuple(_entry(entry) for entry in core.conversation.newest(_ENTRIES)),
        plan=core.books.plans.view(),
        on_console_loss=core.config.approval.on_console_loss,
        watched=watched,
    )


def _mission(mission: Mission) -> MissionView:
    return MissionView(id=mission.id, text=mission.input[:_TEXT], utime=mission.began_utime)


def _entry(entry: Entry) -> ConversationEntry:
    return ConversationEntry(
        number=entry.number,
        role=entry.role,
        text=entry.text[:_TEXT],
        utime=entry.utime,
        skill=entry.skill,
        call_id=entry.call_id,
        is_error=entry.is_error,
        missions=tuple(sorted(entry.missions)),
    )
