"""Reads from a mission's events its state when its agent died."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dimos_streams.agent.missions.end_reasons import is_about, of_last_answer
from dimos_streams.agent.missions.end_state import CallFact, fact_of_result, fact_of_update
from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.record.agent_events import EventKind, sub_of, tool_call_of, tool_event_of
from dimos_streams.agent.record.event_data.calls import ResultData
from dimos_streams.agent.record.event_data.model_answers import AnswerData, UsageData
from dimos_streams.agent.resumption.state import AskedBatch, UnfinishedMission
from dimos_streams.common.boot_time import utime_now
from dimos_streams.common.json.reading import parse_command
from dimos_streams.operator.messages.agent import AgentEvent, Usage
from dimos_streams.tool_stream.event import ToolEvent

_ASKED = 1000


def read_unfinished(id: str, events: Iterable[AgentEvent]) -> UnfinishedMission:
    """Return the state of a mission. Sub-missions died with the process: what they said and heard does not belong to
    this mission; what they used does, and who has ended their calls."""
    reading = _MissionReading(id)
    for event in events:
        reading.read(event)
    return reading.found


def spent_in(usage: UsageData) -> Usage:
    """The usage that a ``usage`` event counts."""
    return Usage(
        requests=1, input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"], cost=usage["cost"]
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
        self._note_call(event)
        if event.kind == EventKind.CALL_END:
            self._ran.add(_asked_as(event))
        if usage := EventKind.USAGE.data_of(event):
            self.found.spent += spent_in(usage)
        elif (answer := EventKind.ANSWER.data_of(event)) and answer["tool_calls"]:
            self.found.asked = [*self.found.asked, _asked(event.utime, answer)][-_ASKED:]
            self._ran = {each for each in self._ran if each[0] != sub_of(event)}
        elif not sub_of(event):
            self._read_own(event)

    def _read_own(self, event: AgentEvent) -> None:
        if start := EventKind.MISSION_START.data_of(event):
            self.found.input, self.found.began_utime = start["text"], utime_now(event.utime, start)
            self.found.known_orders = frozenset(start.get("robot_orders", ()))
            if start.get("is_done"):
                self.found.end_state.end("completed")
        elif ended := EventKind.ENDED.data_of(event):
            self.found.end_state.end(ended["reason"])
        elif event.kind in (EventKind.INPUT, EventKind.ITERATION_START, EventKind.UPDATE):
            self._go_on(event)
        elif answer := EventKind.ANSWER.data_of(event):
            # It is the turn's last: nothing is left of it but to note why it stopped.
            text = answer["text"] or self.found.end_state.text
            self._stop(text, *self._reason(answer), answer.get("about", ()))
        elif stop := EventKind.STOP.data_of(event):
            self._stop(stop["text"], stop["reason"], stop["note"] or stop.get("why", ""), stop.get("about", ()))
            self._heard = False

    def _go_on(self, event: AgentEvent) -> None:
        """Note that the model is in the middle of a turn, or about to begin one."""
        if event.kind == EventKind.INPUT:
            self._heard = self.found.heard = True
            self.found.asked = []
        self.found.in_turn = True

    def _reason(self, answer: AnswerData) -> tuple[str, str]:
        ignored = self._heard and not answer["text"].strip() and not self.found.asked
        reason, note = of_last_answer(answer["finish"], ignored=ignored)
        return reason, note or answer.get("why_cut", "")

    def _stop(self, text: str, reason: str, note: str, about: Collection[str]) -> None:
        self.found.in_turn = False
        heard = self._heard and is_about(about, self.found.id)
        self.found.end_state.note_turn_end(text, reason, note, heard=heard)

    def _note_call(self, event: AgentEvent) -> None:
        """Note what an event says of a call, of a sub-mission's too."""
        fact, tool_event = CallFact(), tool_event_of(event)
        if update := EventKind.UPDATE.data_of(event):
            if tool_event is not None:
                fact = fact_of_update(tool_event, update.get("cancelled", ""))
        elif result := EventKind.RESULT.data_of(event):
            if self.found.id not in roots(result.get("heard", (self.found.id,))):
                return
            fact = _fact_of_result(result, tool_event, ran=_asked_as(event) in self._ran)
        else:
            return
        self.found.end_state.note_call(fact, own=not sub_of(event))


def _fact_of_result(data: ResultData, tool_event: ToolEvent | None, *, ran: bool) -> CallFact:
    """The fact that a result states about a call; ``ran`` if the call came to its result."""
    return fact_of_result(
        data["skill"],
        data["text"],
        tool_event,
        is_error=data.get("is_error", False),
        began=bool(data.get("call_id")),
        cancelled=data.get("cancelled", ""),
        ran=ran,
    )


def _asked_as(event: AgentEvent) -> tuple[str, str]:
    """The sub-mission whose model has asked for a call, empty for the agent's own, and the model's id of it."""
    return sub_of(event), tool_call_of(event)


def _asked(utime: int, answer: AnswerData) -> AskedBatch:
    """The calls that an answer asked for, without those that were damaged, which did not count."""
    calls = [(call["name"], _arguments(call["arguments"])) for call in answer["tool_calls"]]
    return AskedBatch(utime, tuple((name, arguments) for name, arguments in calls if arguments is not None))


def _arguments(text: str) -> Mapping[str, Any] | None:
    """The arguments of a call, or None if they are no object."""
    try:
        arguments = parse_command(text if text.strip() else "{}")
    except ValueError:
        return None
    return {} if arguments is None else arguments if isinstance(arguments, dict) else None
