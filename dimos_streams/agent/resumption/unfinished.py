"""Reads from a mission's events its state when its agent died."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dimos_streams.agent.missions.boot_time import utime_of
from dimos_streams.agent.missions.end_reasons import is_about, of_last_answer, settle
from dimos_streams.agent.missions.mission import roots, stopped_by
from dimos_streams.agent.models.protocol import STALE
from dimos_streams.agent.record.agent_events import EventKind, tool_event_of
from dimos_streams.agent.resumption.state import AskedBatch, UnfinishedMission
from dimos_streams.agent.subagents.sub_mission import of_sub_agent
from dimos_streams.common.text import parse_json
from dimos_streams.operator.messages.agent import AgentEvent, Usage
from dimos_streams.tool_stream.event import Outcome

_ASKED = 1000


def read_unfinished(id: str, events: Iterable[AgentEvent]) -> UnfinishedMission:
    """Return the state of a mission. Sub-missions died with the process: what they said and heard does not belong to
    this mission; what they used does, and who has ended their calls."""
    reading = _MissionReading(id)
    for event in events:
        reading.read(event)
    return reading.found


def spent_of(event: AgentEvent) -> Usage:
    """The usage that a ``usage`` event counts."""
    data = event.data
    return Usage(
        requests=1, input_tokens=data["input_tokens"], output_tokens=data["output_tokens"], cost=data["cost"]
    )


class _MissionReading:
    """A mission, as far as its events are read."""

    def __init__(self, id: str) -> None:
        self.found = UnfinishedMission(id=id, input="")
        self._heard = False
        """True if the turn that goes on has heard input."""

    def read(self, event: AgentEvent) -> None:
        """Read the next event of the mission."""
        if event.kind in (EventKind.UPDATE, EventKind.RESULT):
            self._note_end(event)
        if event.kind == EventKind.USAGE:
            self.found.spent += spent_of(event)
        elif event.kind == EventKind.ANSWER and event.data["tool_calls"]:
            self.found.asked = [*self.found.asked, _asked(event)][-_ASKED:]
        elif not of_sub_agent(event):
            self._read_own(event)

    def _read_own(self, event: AgentEvent) -> None:
        match event.kind:
            case EventKind.MISSION_START:
                self.found.input, self.found.began_utime = event.data["text"], utime_of(event)
                self.found.ended = "completed" if event.data.get("is_done") else ""
            case EventKind.ENDED:
                self.found.ended = event.data["reason"]
            case EventKind.INPUT | EventKind.ITERATION_START | EventKind.UPDATE:
                self._go_on(event)
            case EventKind.ANSWER:  # the turn's last: nothing is left of it but to note why it stopped
                text = event.data["text"] or self.found.text
                self._stop(text, *self._reason(event), event.data.get("about", ()))
            case EventKind.STOP:
                note = event.data["note"] or event.data.get("why", "")
                self._stop(event.data["text"], event.data["reason"], note, event.data.get("about", ()))
                self._heard = False

    def _go_on(self, event: AgentEvent) -> None:
        """Note that the model is in the middle of a turn, or about to begin one."""
        if event.kind == EventKind.INPUT:
            self._heard = self.found.heard = True
            if event.data.get("speaker", "operator") == "operator":
                self.found.asked = []
        self.found.in_turn = True

    def _reason(self, answer: AgentEvent) -> tuple[str, str]:
        ignored = self._heard and not answer.data["text"].strip() and not self.found.asked
        reason, note = of_last_answer(answer.data["finish"], ignored=ignored)
        return reason, note or answer.data.get("why_cut", "")

    def _stop(self, text: str, reason: str, note: str, about: Collection[str]) -> None:
        self.found.in_turn = False
        self.found.text = text
        settle(self.found, reason, note, heard=self._heard and is_about(about, self.found.id))

    def _note_end(self, event: AgentEvent) -> None:
        """Note what an event says of the end of a call, of a sub-mission's too; only a call of its own has failed for
        it."""
        if self.found.id in roots(event.data.get("heard", (self.found.id,))):
            if not of_sub_agent(event):
                self.found.failed_call = self.found.failed_call or _failed_call(event)
            tool_event = tool_event_of(event)
            self.found.stopped = self.found.stopped or stopped_by(tool_event)
            ended = tool_event is not None and tool_event.type == "close"
            if ended or (event.kind == EventKind.RESULT and event.data.get("call_id")):
                self.found.cancelled_call = event.data.get("cancelled", "")


def _failed_call(event: AgentEvent) -> str:
    """The text of a mission's call that has failed; empty if this event reports none."""
    data, tool_event = event.data, tool_event_of(event)
    outcome = tool_event.outcome if tool_event is not None else None
    if event.kind == EventKind.UPDATE:
        failed, text = outcome not in (None, Outcome.COMPLETED), tool_event.text if tool_event is not None else ""
    else:
        failed, text = bool(data.get("is_error")) and data["text"] != STALE, data.get("text", "")
    if not failed or outcome == Outcome.CANCELLED:
        return ""
    return f"{data['skill']}: {text}"


def _asked(event: AgentEvent) -> AskedBatch:
    """The calls that an answer asked for, without those that were damaged, which did not count."""
    calls = [(call["name"], _arguments(call["arguments"])) for call in event.data["tool_calls"]]
    return AskedBatch(event.utime, tuple((name, arguments) for name, arguments in calls if arguments is not None))


def _arguments(text: str) -> Mapping[str, Any] | None:
    """The arguments of a call, or None if they are no object."""
    try:
        arguments = parse_json(text if text.strip() else "{}")
    except ValueError:
        return None
    return {} if arguments is None else arguments if isinstance(arguments, dict) else None
