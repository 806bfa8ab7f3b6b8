"""The record of what was said and done, bounded, and what a model sees of it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from dimos_streams import clock
from dimos_streams.agent.context.entry import Entry, Role
from dimos_streams.agent.context.render import own_text, update_head
from dimos_streams.agent.context.shortening import expendable, halved, is_final
from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from dimos_streams.agent.models.thoughts import Thoughts
from dimos_streams.agent.record.agent_events import EventKind, tool_event_of
from dimos_streams.agent.record.event_data.base import EntryData, ToolCallData
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import ToolEvent

SILENT = "(nothing to add)"
"""The text that stands for an answer of the model that said nothing."""
LEFT_OUT = "What was said before is left out here."
"""The text that follows the standing orders in a conversation that was shortened."""
_ROLES: dict[str, Role] = {
    EventKind.INPUT: "operator",
    EventKind.UPDATE: "event",
    EventKind.ANSWER: "assistant",
    EventKind.RESULT: "tool",
    EventKind.NOTE: "note",
    EventKind.ERROR: "error",
    EventKind.RETRY: "note",
    EventKind.HOLD: "note",
    EventKind.SHORTENED: "note",
    EventKind.FORGOTTEN: "note",
    EventKind.APPROVAL_CREATED: "note",
}
"""The roles that kinds of the agent's events have in the conversation; other kinds are no part of it."""


class Conversation:
    """Entries in order, made of the agent's events: the same events make the same entries.

    When there are more than ``max_entries``, the oldest are dropped; when there is too much for a model, the oldest
    are kept from it; both by the rule of ``shortening``. Of each call's progress only the newest entry is kept, until
    the call's next other entry.
    """

    def __init__(self, system_prompt: str = "", *, max_entries: int = 1000) -> None:
        self._system_prompt = system_prompt
        self._max_entries = max_entries
        self._entries: list[Entry] = []
        self._messages: list[Message | None] = []
        """The message that a model sees for each entry, or None if it sees none."""
        self._progress = NewestEntries[str, Entry](max_entries)
        self._ended: set[str] = set()
        """The missions that were ended early and are not over."""
        self._left_out = False
        """True if a model does not see what was said before."""
        self._dropped = 0
        self._number = self._event_number = 0
        self._changed = asyncio.Event()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries that are kept, oldest first, progress included."""
        return tuple(self.after(0))

    @property
    def last_number(self) -> int:
        """The newest entry's number, or 0 before the first."""
        return self._number

    @property
    def awaits_answer(self) -> bool:
        """True if a model would take the last thing that it sees for something to react to."""
        newest = next((message for message in reversed(self._messages) if message is not None), None)
        return newest is not None and not is_final(newest)

    @property
    def changed(self) -> asyncio.Event:
        """An event that is set at the next change. Take it before looking, then wait."""
        return self._changed

    def apply(self, event: AgentEvent) -> Entry | None:
        """Write and return the entry that an event of the agent makes, or None if it makes none; shorten or forget
        where the event says so."""
        self._event_number = event.number
        self._change_view(event)
        data, notice = cast("EntryData", event.data), own_text(event)
        role = "event" if notice else _ROLES.get(event.kind)
        if role is None:
            return None
        text = notice or data.get("text", "")
        own = _notice(text, event.agent, data.get("call_id", ""), event.utime) if role == "event" else None
        return self.add_entry(
            role,
            text,
            utime=event.utime,
            tool_calls=tuple(map(_tool_call, data.get("tool_calls", ()))),
            thoughts=_thoughts(data),
            finish=data.get("finish", ""),
            tool_call_id=data.get("tool_call_id", ""),
            skill=data.get("skill", ""),
            call_id=data.get("call_id", ""),
            event=tool_event_of(event) or own,
            is_error=data.get("is_error", False),
            note=data.get("note", ""),
            speaker=data.get("speaker", "data"),
            missions=frozenset(event.missions),
            begins=event.missions[0] if role == "operator" and event.missions else "",
        )

    def withdraw(self, mission: str) -> None:
        """Let the model see a mission's input that was not answered yet as withdrawn."""
        for index in range(len(self._messages) - 1, -1, -1):
            if is_final(self._messages[index]):
                return
            entry = self._entries[index]
            if entry.begins == mission and self._messages[index] is not None:
                text = f"Withdrawn, so nothing is to be done about it any more: {entry.text}"
                self._messages[index] = UserMessage(text, _notice(text, "", "", entry.utime), is_past=True)

    def add_entry(self, role: Role, text: str, *, utime: int | None = None, **fields: Any) -> Entry:
        """Write and return an entry; ``fields`` are those of ``Entry``."""
        self._number += 1
        entry = Entry(
            number=self._number,
            event_number=self._event_number,
            utime=clock.utime() if utime is None else utime,
            role=role,
            text=text,
            **fields,
        )
        self._progress.pop(entry.call_id, None)
        if role == "progress":
            self._progress[entry.call_id] = entry
        else:
            self._entries.append(entry)
            is_past = bool(entry.missions) and entry.missions <= self._ended
            self._messages.append(_message(entry, is_past))
            self._trim()
        self.notify()
        return entry

    def after(self, number: int) -> list[Entry]:
        """The entries with higher numbers, as far as they are kept."""
        start = len(self._entries)
        while start and self._entries[start - 1].number > number:
            start -= 1
        newer = self._entries[start:] + [entry for entry in self._progress.values() if entry.number > number]
        return sorted(newer, key=lambda entry: entry.number)

    def newest(self, count: int) -> list[Entry]:
        """The newest ``count`` entries, progress included, oldest first."""
        newer = [*self._entries[-count:], *self._progress.values()]
        return sorted(newer, key=lambda entry: entry.number)[-count:]

    def messages(self) -> tuple[Message, ...]:
        """The messages that a model is given."""
        prompt = "\n\n".join(part for part in (self._system_prompt, LEFT_OUT if self._left_out else "") if part)
        system = (SystemMessage(prompt),) if prompt else ()
        return (*system, *[message for message in self._messages if message is not None])

    def notify(self) -> None:
        """Wake everybody who waits for ``changed``."""
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def can_be_shortened(self) -> bool:
        """True if a model could be given less of it; an event of the kind ``shortened`` does that."""
        return halved(self._messages) is not None

    def take_dropped(self) -> int:
        """Return how many entries were dropped because there were too many, since the last time this was asked."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def _change_view(self, event: AgentEvent) -> None:
        """Let the model see less, or see it otherwise, where an event says so."""
        if event.kind == EventKind.SHORTENED:
            self._shorten()
        elif event.kind == EventKind.FORGOTTEN:
            self._forget()
        elif ended := EventKind.ENDED.data_of(event):
            self._ended.update(event.missions)
            if ended.get("turn_goes_on"):
                for mission in event.missions[:1]:
                    self.withdraw(mission)
        elif event.kind == EventKind.DONE:
            self._ended.difference_update(event.missions)

    def _shorten(self) -> None:
        self._messages = halved(self._messages) or self._messages
        self._left_out = True

    def _forget(self) -> None:
        """Forget what came before. The present exchange stays: calls without their results are no valid messages."""
        newest = len(self._messages)
        while self.awaits_answer and newest and not is_final(self._messages[newest - 1]):
            newest -= 1
        self._messages[:newest] = [None] * newest
        self._left_out = False

    def _trim(self) -> None:
        if len(self._entries) <= self._max_entries:
            return
        # Room for a while: what a model sees changes with each trim.
        goal = self._max_entries - self._max_entries // 8
        gone = expendable(self._messages, len, goal)
        self._entries = [entry for index, entry in enumerate(self._entries) if index not in gone]
        self._messages = [message for index, message in enumerate(self._messages) if index not in gone]
        self._left_out = self._left_out or bool(gone)
        self._dropped += len(gone)


def _thoughts(data: EntryData) -> Thoughts:
    details = {name: tuple(parts) for name, parts in data.get("thought_details", {}).items()}
    return Thoughts(data.get("thoughts", ""), details)


def _tool_call(call: ToolCallData) -> ToolCall:
    return ToolCall(call["id"], call["name"], call["arguments"], call.get("extra"))


def _notice(text: str, agent: str, call_id: str, utime: int) -> ToolEvent:
    """The agent's own notice as an event: it is data for its model, like what skills say."""
    return ToolEvent(
        utime=utime, call_id=call_id, seq=0, type="update", module=agent, skill="agent", caller=agent, text=text
    )


def _message(entry: Entry, is_past: bool) -> Message | None:
    """The message that a model sees for an entry, or None if it sees none. An answer that said nothing is one all the
    same; otherwise its input would be taken up again together with what is said next."""
    if entry.role == "operator":
        return UserMessage(entry.text, task=entry.speaker == "task")
    if entry.role == "event" and entry.event is not None:
        return UserMessage(entry.text.removeprefix(update_head(entry.event)), entry.event, is_past=is_past)
    if entry.role == "assistant":
        return AssistantMessage(entry.text or ("" if entry.tool_calls else SILENT), entry.tool_calls, entry.thoughts)
    if entry.role == "tool":
        return ToolResultMessage(
            entry.tool_call_id,
            entry.skill,
            entry.text,
            entry.is_error,
            event=entry.event,
            note=entry.note,
            speaker=entry.speaker,
        )
    return None
