"""Reads from a record how an agent stood that died: what was delivered, what was open, what was in the middle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.missions.end_reasons import of_last_answer, settle
from dimos_streams.agent.models.protocol import STALE
from dimos_streams.agent.policies.gates.enabled import SKILL_SET
from dimos_streams.agent.record.agent_events import EventKind, tool_event_of
from dimos_streams.agent.record.mission_record import RecordedMission, RecordLine, read_general, read_missions
from dimos_streams.agent.subagents.sub_mission import SUB, of_sub_agent
from dimos_streams.common.text import parse_json
from dimos_streams.operator.messages.agent import AgentEvent, Usage
from dimos_streams.tool_stream.event import Outcome

_CLOSED = 1000
_ASKED = 1000


@dataclass(slots=True, kw_only=True)
class RecordedCall:
    """A call as the record knows it: one whose close was not delivered, or one that the model has no result of."""

    skill: str
    missions: tuple[str, ...]
    call_id: str = ""
    """Known once it had begun."""
    last_seq: int = 0
    """The number of the newest event that was delivered."""
    arguments: Mapping[str, Any] | None = None
    """With which it was about to begin; None if that is not known."""
    tool_call_id: str = ""
    """The model's id of what it asked for; empty where that is not the question."""
    sub: str = ""
    """The sub-mission whose model asked; empty for the agent's own."""


@dataclass(frozen=True, slots=True)
class AskedBatch:
    """The calls that one answer asked for."""

    utime: int
    calls: tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass(slots=True, kw_only=True)
class UnfinishedMission:
    """A mission that was not over."""

    id: str
    input: str
    heard: bool = False
    """Whether the input had reached the conversation."""
    ended: str = ""
    """Why it was ended early: all that is left to do of it is to end its calls."""
    in_turn: bool = False
    """Whether the model was in the middle of a turn, or was about to begin one."""
    spent: Usage = field(default_factory=Usage)
    reason: str = ""
    why: str = ""
    text: str = ""
    """The text of its newest turn."""
    failed_call: str = ""
    """The text of the first of its calls that failed."""
    asked: list[AskedBatch] = field(default_factory=list)
    """The newest answers that asked for calls since the operator's last input, those of sub-missions too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedAbort:
    """An abort that was under way."""

    reason: str
    rollback: bool
    others: bool
    """Whether others' calls were to be ended as well."""


@dataclass(slots=True, kw_only=True)
class OperatorWishes:
    """The operator's settings, which hold for the new process too."""

    mode: Mode = Mode.RUNNING
    model: str = ""
    """Empty for that of the config."""
    skills: dict[str, bool] = field(default_factory=dict)
    """Those that were enabled or disabled."""
    watched: bool | None = None
    """Whether a console was there; None where the record says nothing of it."""


@dataclass(slots=True, kw_only=True)
class Resumption:
    """All that a new process needs to go on."""

    events: list[AgentEvent]
    """The events of the newest missions and of those that were not over, in order."""
    offset: int
    """In the journal: all up to it is recorded."""
    missions: list[UnfinishedMission]
    calls: list[RecordedCall]
    """Those whose close was not delivered."""
    closed: list[str]
    """Ids of the newest calls whose close was delivered."""
    unanswered: list[RecordedCall]
    """Those that a model asked for, and that have no result."""
    wishes: OperatorWishes
    lessons: dict[str, list[str]]
    """The lessons learnt from each model's server."""
    abort: UnfinishedAbort | None
    """None if none was under way."""

    @property
    def last_number(self) -> int:
        """The number of the newest event."""
        return self.events[-1].number if self.events else 0


def read_resumption(directory: Path, agent: str) -> Resumption | None:
    """Read the record of an agent; None if there is none."""
    missions = read_missions(directory, agent)
    lines = _in_order([*missions], read_general(directory, agent))
    if not lines:
        return None
    events = [line.event for line in lines]
    open_calls, closed = _calls(events)
    open_missions = [_unfinished(mission) for mission in missions if mission.done is None]
    _end_aborted(open_missions, events)
    return Resumption(
        events=events,
        offset=lines[-1].offset,
        missions=open_missions,
        calls=open_calls,
        closed=closed[-_CLOSED:],
        unanswered=_unanswered(events),
        wishes=_wishes(events),
        lessons=_lessons(events),
        abort=_abort(events),
    )


def _in_order(missions: Iterable[RecordedMission], general: Iterable[RecordLine]) -> list[RecordLine]:
    """Each event once, though it may be in several files."""
    by_number = {line.event.number: line for mission in missions for line in mission.lines}
    by_number.update((line.event.number, line) for line in general)
    return [by_number[number] for number in sorted(by_number)]


def _unfinished(mission: RecordedMission) -> UnfinishedMission:
    """Sub-missions died with the process: what they said and heard is not of this mission, what they used is."""
    found = UnfinishedMission(id=mission.id, input="")
    heard = False  # in the turn that goes on
    for event in mission.events:
        if event.kind == EventKind.USAGE:
            found.spent += spent_of(event)
        elif event.kind == EventKind.ANSWER and event.data["tool_calls"]:
            found.asked = [*found.asked, _asked(event)][-_ASKED:]
        elif of_sub_agent(event):
            continue
        elif event.kind == EventKind.ANSWER:  # the turn's last: nothing is left of it but to note why it stopped
            found.in_turn = False
            found.text = event.data["text"] or found.text
            reason, note = of_last_answer(event.data["finish"])
            settle(found, reason, note or event.data.get("why_cut", ""), heard=heard)
        elif event.kind == EventKind.ENDED:
            found.ended = event.data["reason"]
        elif event.kind == EventKind.MISSION_START:
            found.input = event.data["text"]
            found.ended = "completed" if event.data.get("is_done") else ""
        elif event.kind in (EventKind.INPUT, EventKind.UPDATE, EventKind.ITERATION_START):
            if event.kind == EventKind.UPDATE:
                found.failed_call = found.failed_call or _failed_call(event, mission.id)
            heard = heard or event.kind == EventKind.INPUT
            found.heard = found.heard or event.kind == EventKind.INPUT
            if event.kind == EventKind.INPUT and event.data.get("speaker", "operator") == "operator":
                found.asked = []
            found.in_turn = True
        elif event.kind == EventKind.RESULT:
            found.failed_call = found.failed_call or _failed_call(event, mission.id)
        elif event.kind == EventKind.STOP:
            found.in_turn = False
            found.text = event.data["text"]
            settle(found, event.data["reason"], event.data["note"] or event.data.get("why", ""), heard=heard)
            heard = False
    return found


def _end_aborted(missions: Iterable[UnfinishedMission], events: Iterable[AgentEvent]) -> None:
    """An abort ends its missions with its first event, whatever of it reached their own files."""
    aborted = {id for event in events if _begins_abort(event) for id in event.missions}
    for mission in missions:
        if mission.id in aborted:
            mission.ended = mission.ended or "aborted"


def _begins_abort(event: AgentEvent) -> bool:
    return event.kind == EventKind.ABORT and event.data["phase"] == "start"


def _abort(events: Iterable[AgentEvent]) -> UnfinishedAbort | None:
    newest = next((event for event in reversed([*events]) if event.kind == EventKind.ABORT), None)
    if newest is None or not _begins_abort(newest):
        return None
    data = newest.data
    return UnfinishedAbort(reason=data["reason"], rollback=data["rollback"], others=data["others"])


def _failed_call(event: AgentEvent, mission: str) -> str:
    """The text of a mission's call that has failed; empty if this event reports none."""
    data, tool_event = event.data, tool_event_of(event)
    outcome = tool_event.outcome if tool_event is not None else None
    if event.kind == EventKind.UPDATE:
        failed, text = outcome not in (None, Outcome.COMPLETED), tool_event.text if tool_event is not None else ""
    else:
        failed, text = bool(data.get("is_error")) and data["text"] != STALE, data.get("text", "")
    if not failed or outcome == Outcome.CANCELLED or mission not in data.get("heard", (mission,)):
        return ""
    return f"{data['skill']}: {text}"


def _asked(event: AgentEvent) -> AskedBatch:
    """Calls that were damaged did not count."""
    calls = [(call["name"], _arguments(call["arguments"])) for call in event.data["tool_calls"]]
    return AskedBatch(event.utime, tuple((name, arguments) for name, arguments in calls if arguments is not None))


def _arguments(text: str) -> Mapping[str, Any] | None:
    """None for what is no object."""
    try:
        arguments = parse_json(text if text.strip() else "{}")
    except ValueError:
        return None
    return {} if arguments is None else arguments if isinstance(arguments, dict) else None


def _wishes(events: Iterable[AgentEvent]) -> OperatorWishes:
    found = OperatorWishes()
    for event in events:
        if event.kind == EventKind.PAUSE:
            found.mode = Mode.PAUSED
        elif event.kind == EventKind.RESUME:
            found.mode = Mode.RUNNING
        elif event.kind == EventKind.STEP and event.data["phase"] == "on":
            found.mode = Mode.STEPPING
        elif event.kind == EventKind.MODEL_SWITCH:
            found.model = event.data["model"]
        elif event.kind == EventKind.CONSOLE:
            found.watched = event.data["present"]
        elif event.kind == SKILL_SET:
            found.skills[event.data["skill"]] = event.data["enabled"]
    return found


def _lessons(events: Iterable[AgentEvent]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event in events:
        if event.kind == EventKind.NOTE and "lesson" in event.data:
            found.setdefault(event.data["model"], []).append(event.data["lesson"])
    return found


def spent_of(event: AgentEvent) -> Usage:
    """The usage that a ``usage`` event counts."""
    data = event.data
    return Usage(
        requests=1, input_tokens=data["input_tokens"], output_tokens=data["output_tokens"], cost=data["cost"]
    )


def _calls(events: Iterable[AgentEvent]) -> tuple[list[RecordedCall], list[str]]:
    """The calls whose close was not delivered, and the ids of those whose close was."""
    found: dict[str, RecordedCall] = {}
    closed: dict[str, None] = {}
    for event in events:
        data = event.data
        if event.kind == EventKind.CALL_OPEN:
            found[data["call_id"]] = RecordedCall(
                call_id=data["call_id"], skill=data["skill"], missions=event.missions, arguments=data["arguments"]
            )
        elif data.get("call_id") and (tool_event := tool_event_of(event)) is not None:
            call = found.setdefault(
                data["call_id"], RecordedCall(call_id=data["call_id"], skill=data["skill"], missions=event.missions)
            )
            call.last_seq = max(call.last_seq, tool_event.seq)
            if tool_event.type == "close":
                closed[call.call_id] = None
    return [call for call_id, call in found.items() if call_id not in closed], list(closed)


def _unanswered(events: Iterable[AgentEvent]) -> list[RecordedCall]:
    """Those of the newest answers, of the agent and of each sub-mission; earlier ones have all their results."""
    asked: dict[str, dict[str, RecordedCall]] = {}
    for event in events:
        data, sub = event.data, event.data.get(SUB, "")
        if event.kind == EventKind.ANSWER and data["tool_calls"]:
            asked[sub] = {
                call["id"]: RecordedCall(
                    tool_call_id=call["id"], skill=call["name"], missions=event.missions, sub=sub
                )
                for call in data["tool_calls"]
            }
            continue
        wish = asked.get(sub, {}).get(data.get("tool_call_id", ""))
        if wish is None:
            continue
        if event.kind == EventKind.CALL_RUN:
            wish.arguments = data["arguments"]
        elif event.kind == EventKind.CALL_OPEN:
            wish.call_id = data["call_id"]
        elif event.kind == EventKind.RESULT:
            del asked[sub][wish.tool_call_id]
    return [wish for wishes in asked.values() for wish in wishes.values()]
