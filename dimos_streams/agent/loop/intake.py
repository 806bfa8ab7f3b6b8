"""Messages on their way from the queue into the record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.context.render import failed, update_body, update_head
from dimos_streams.agent.context.transcript import LoopTranscript
from dimos_streams.agent.missions.end_state import cancelled_by_another, fact_of_update
from dimos_streams.agent.missions.message_queue import CallUpdate, MessageQueue, Notice, OperatorInput, QueueItem
from dimos_streams.agent.missions.mission import ids, note_call, release_all
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.event_data.calls import UpdateData
from dimos_streams.agent.record.event_data.missions import InputData


def release(items: Sequence[QueueItem]) -> None:
    """Release the missions of messages that were dealt with: they keep them going no longer."""
    for item in items:
        release_all(item.missions)


class Intake:
    """Records what a loop takes from its queue, each message once, in order."""

    def __init__(self, queue: MessageQueue, transcript: LoopTranscript, calls: CallManager) -> None:
        """``calls`` are those whose updates are in the queue."""
        self._queue = queue
        self._transcript = transcript
        self._calls = calls
        self._unrecorded: deque[QueueItem] = deque()

    def unrecorded_offset(self) -> int | None:
        """The offset of the oldest event that is dealt with and not in the record yet, or None if there is none."""
        answers = self._calls.incoming
        offsets = (self._oldest_taken(), self._queue.oldest_offset(), answers.unrecorded_offset())
        return min((offset for offset in offsets if offset is not None), default=None)

    def record_where(self, wanted: Callable[[QueueItem], bool]) -> bool:
        """Record what waits and is ``wanted``, and have done with it. Return whether there was any."""
        items = self._queue.take_where(wanted)
        self.record(items)
        release(items)
        return bool(items)

    def record(self, items: Sequence[QueueItem]) -> None:
        """Record messages. Progress of open calls goes into the conversation only: nothing but the newest of it
        matters."""
        self._unrecorded.extend(items)
        while self._unrecorded:
            item = self._unrecorded[0]
            if isinstance(item, OperatorInput) and item.withdrawn:
                self._note_withdrawn(item)
            elif isinstance(item, OperatorInput):
                data = InputData(text=item.text)
                if item.speaker != "operator":
                    data["speaker"] = item.speaker
                self._transcript.emit(EventKind.INPUT, ids(item.missions), **data)
            elif isinstance(item, Notice):
                self._record_notice(item)
            elif item.event.type == "progress":
                self._record_progress(item)
            else:
                self._record_update(item)
            self._unrecorded.popleft()

    def _oldest_taken(self) -> int | None:
        if not self._unrecorded:
            return None
        offsets = (item.offset for item in self._unrecorded if isinstance(item, CallUpdate))
        return min((offset for offset in offsets if offset), default=None)

    def _note_withdrawn(self, input: OperatorInput) -> None:
        """Note withdrawn input for people only: a model would carry out what it finds unanswered, no matter who
        speaks to it next."""
        text = f"not heard any more ({input.missions[0].ended}): {input.text}"
        self._transcript.emit(EventKind.NOTE, ids(input.missions), text=text)

    def _record_notice(self, item: Notice) -> None:
        if not item.text:
            return
        self._transcript.emit(EventKind.UPDATE, ids(item.missions), text=item.text, skill="agent")

    def _record_progress(self, item: CallUpdate) -> None:
        event = item.event
        if self._calls.memory.closed(event.call_id) is not None:
            return  # its end may have been told already, and nothing would take the place of this
        self._transcript.conversation.add_entry(
            "progress",
            event.text,
            skill=event.skill,
            call_id=event.call_id,
            event=event,
            missions=frozenset(ids(item.missions)),
        )

    def _record_update(self, item: CallUpdate) -> None:
        event, body = item.event, update_body(item.event)
        cancelled = cancelled_by_another(event, by_agent=item.ended_by_agent)
        note_call(item.missions, fact_of_update(event, cancelled))
        body = self._transcript.results.shorten(body, skill=event.skill, is_error=failed(event))
        data = UpdateData(
            text=f"{update_head(event)}{body}",
            skill=event.skill,
            call_id=event.call_id,
            event=event.to_dict(),
            is_error=failed(event),
        )
        if cancelled:
            data["cancelled"] = cancelled
        self._transcript.emit(EventKind.UPDATE, ids(item.missions), **data)
