"""The memory of an agent: its event log, and what is made of the events."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.context.conversation import Conversation
from dimos_streams.agent.control.undo_log import UndoLog
from dimos_streams.agent.record.agent_events import EventKind, EventLog, sub_of
from dimos_streams.agent.record.mission_record import MissionRecord
from dimos_streams.agent.resumption.state import Resumption
from dimos_streams.agent.standing_events import Setting, StandingEvents
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import AgentEvent

_ORDERED_BEFORE = (
    "the agent was started again after this order had reached it, and does not carry it out twice: look at what has"
    " become of it before you give it again"
)


class AgentMemory:
    """The event log of an agent with its record on disk, its conversation and its undo log."""

    def __init__(
        self,
        config: AgentConfig,
        name: str,
        *,
        record_dir: Path | None,
        before: Resumption | None,
    ) -> None:
        """``record_dir`` is where missions are recorded, or None for nowhere; ``before`` is what the record says of
        an agent of that name that was here before, or None if there was none."""
        self.before = before
        self._standing = StandingEvents()
        self._orders_before = before.orders if before else frozenset()
        self.events = EventLog(name, last_number=before.last_number if before else 0)
        self.record = MissionRecord(
            record_dir,
            name,
            kept=config.missions_kept,
            unfinished=(mission.id for mission in before.missions) if before else (),
            standing=lambda: self._standing.events,
        )
        self.conversation = Conversation(config.system_prompt, max_entries=config.conversation_entries)
        self.undo_log = UndoLog()

    def apply(self, event: AgentEvent) -> None:
        """Apply an event. What a sub-agent says is not in this conversation; what it does can be undone."""
        if not sub_of(event):
            self.conversation.apply(event)
        self.undo_log.apply(event)

    def restore(self) -> tuple[AgentEvent, ...]:
        """Apply the events of the process before this one, which are written already, and return them. They may be
        many, and are kept no longer."""
        if self.before is None:
            return ()
        events = tuple(self.before.events)
        self.before.events.clear()
        for event in events:
            self._standing.apply(event)
            self.apply(event)
        self._standing.note_written()
        self.undo_log.restarted()
        self.conversation.take_dropped()  # the agent before has reported them
        return events

    def note_order(self, id: str, order: str) -> None:
        """Note that an operator's order is about to be carried out; ``id`` is the call that gives it. Raises
        ``SkillError`` if a process before this one has noted it."""
        if id in self._orders_before:
            raise SkillError(_ORDERED_BEFORE)
        self.events.emit(EventKind.ORDER, (), id=id, order=order)

    def forget(self) -> None:
        """Begin a new conversation; a turn in progress keeps its messages, and the record stays complete."""
        self.events.emit(EventKind.FORGOTTEN, (), text="The operator has begun a new conversation")

    def listen(self) -> None:
        """Write down each event from now on; listeners that are added later hear only of events that are written."""
        self.events.listen(self._standing.apply)
        self.events.listen(self._write)

    def unkept(self, setting: Setting) -> str:
        """The reason why a successor would not have a setting as it is; empty if it would. What could not be written
        is tried again first."""
        self.record.catch_up()
        self._note_written()
        return "" if self._standing.is_kept(setting) else self.record.trouble

    def unkept_for(self, missions: Iterable[str]) -> str:
        """The reason why a successor would not know what was decided on calls of these missions, or what of them was
        taken back; empty if it would. What could not be written is tried again first."""
        self.record.catch_up()
        return self.record.trouble if self.record.lacks(missions) else ""

    def _write(self, event: AgentEvent) -> None:
        self.record.write(event)
        self._note_written()

    def _note_written(self) -> None:
        if not self.record.lacks_general:
            self._standing.note_written()
        self.record.set_outdated(self._standing.lacks_order)
