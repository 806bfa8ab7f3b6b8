"""Reads from a mission's events its state when its agent died."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dimos_streams.agent.missions.boot_time import utime_of
from dimos_streams.agent.missions.end_reasons import is_about, of_last_answer
from dimos_streams.agent.missions.end_state import CallFact, fact_of_result, fact_of_update
from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.record.agent_events import EventKind, tool_event_of
from dimos_streams.agent.resumption.state import AskedBatch, UnfinishedMission
from dimos_streams.agent.subagents.sub_mission import SUB, of_sub_agent
from dimos_streams.common.json.reading import parse_command
from dimos_streams.operator.messages.agent import AgentEvent, Usage

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
        self._ran: set[tuple[str, str]] = set()
        """The calls of each model's newest answer that came to their result, by whose they are and the model's
        ids."""

    def read(self, event: AgentEvent) -> None:
        """Read the next event of the mission."""
        if event.kind in (EventKind.UPDATE, EventKind.RESULT):
            self._note_call(event)
        elif event.kind == EventKind.CALL_END:
            self._ran.add(_asked_as(event))
        if event.kind == EventKind.USAGE:
            self.found.spent += spent_of(event)
        elif event.kind == EventKind.ANSWER and event.data["tool_calls"]:
            self.found.asked = [*self.found.asked, _asked(event)][-_ASKED:]
            self._ran = {each for each in self._ran if each[0] != _asking(event)}
        elif not of_sub_agent(event):
            self._read_own(event)

    def _read_own(self, event: AgentEvent) -> None:
        match event.kind:
            case EventKind.MISSION_START:
                self.found.input, self.found.began_utime = event.data["text"], utime_of(event)
                if event.data.get("is_done"):
                    self.found.end_state.end("completed")
            case EventKind.ENDED:
                self.found.end_state.end(event.data["reason"])
            case EventKind.INPUT | EventKind.ITERATION_START | EventKind.UPDATE:
                self._go_on(event)
            case EventKind.ANSWER:  # the turn's last: nothing is left of it but to note why it stopped
                text = event.data["text"] or self.found.end_state.text
                self._stop(text, *self._reason(event), event.data.get("about", ()))
            case EventKind.STOP:
                note = event.data["note"] or event.data.get("why", "")
                self._stop(event.data["text"], event.data["reason"], note, event.data.get("about", ()))
                self._heard = False

    def _go_on(self, event: AgentEvent) -> None:
        """Note that the model is in the middle of a turn, or about to begin one."""
        if event.kind == EventKind.INPUT:
            self._heard = self.found.heard = True
            self.found.asked = []
        self.found.in_turn = True

    def _reason(self, answer: AgentEvent) -> tuple[str, str]:
        ignored = self._heard and not answer.data["text"].strip() and not self.found.asked
        reason, note = of_last_answer(answer.data["finish"], ignored=ignored)
        return reason, note or answer.data.get("why_cut", "")

    def _stop(self, text: str, reason: str, note: str, about: Collection[str]) -> None:
        self.found.in_turn = False
        heard = self._heard and is_about(about, self.found.id)
        self.found.end_state.note_turn_end(text, reason, note, heard=heard)

    def _note_call(self, event: AgentEvent) -> None:
        """Note what an event says of a call, of a sub-mission's too."""
        if self.found.id in roots(event.data.get("heard", (self.found.id,))):
            fact = _fact_of(event, ran=_asked_as(event) in self._ran)
            self.found.end_state.note_call(fact, own=not of_sub_agent(event))


def _fact_of(event: AgentEvent, *, ran: bool) -> CallFact:
    """The fact that an update or a result states about a call; ``ran`` if the call came to its result."""
    data, tool_event, cancelled = event.data, tool_event_of(event), event.data.get("cancelled", "")
    if event.kind == EventKind.UPDATE:
        return CallFact() if tool_event is None else fact_of_update(tool_event, cancelled)
    return fact_of_result(
        data["skill"],
        data["text"],
        tool_event,
        is_error=bool(data.get("is_error")),
        began=bool(data.get("call_id")),
        cancelled=cancelled,
        ran=ran,
    )


def _asked_as(event: AgentEvent) -> tuple[str, str]:
    """The one whose model has asked for a call, and the model's id of it."""
    return _asking(event), event.data.get("tool_call_id", "")


def _asking(event: AgentEvent) -> str:
    """The sub-mission whose model an event is about, empty for the agent's own."""
    sub: str = event.data.get(SUB, "")
    return sub


def _asked(event: AgentEvent) -> AskedBatch:
    """The calls that an answer asked for, without those that were damaged, which did not count."""
    calls = [(call["name"], _arguments(call["arguments"])) for call in event.data["tool_calls"]]
    return AskedBatch(event.utime, tuple((name, arguments) for name, arguments in calls if arguments is not None))


def _arguments(text: str) -> Mapping[str, Any] | None:
    """The arguments of a call, or None if they are no object."""
    try:
        arguments = parse_command(text if text.strip() else "{}")
    except ValueError:
        return None
    return {} if arguments is None else arguments if isinstance(arguments, dict) else None
