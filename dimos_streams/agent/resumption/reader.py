"""Reads from a record the state of an agent that died."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.record.agent_events import (
    EventKind,
    delivered_by,
    lesson_of,
    sub_of,
    tool_call_of,
    tool_event_of,
)
from dimos_streams.agent.record.read_record import (
    MAX_OFFSET,
    RecordedMission,
    RecordLine,
    is_outdated,
    read_general,
    read_missions,
)
from dimos_streams.agent.resumption.mission_reader import read_unfinished
from dimos_streams.agent.resumption.state import (
    OperatorSettings,
    RecordedCall,
    Resumption,
    UnfinishedAbort,
    UnfinishedMission,
)
from dimos_streams.operator.messages.agent import AgentEvent

_CLOSED = 1000


def read_resumption(directory: Path, agent: str) -> Resumption | None:
    """Read the record of an agent; return None if there is none."""
    missions = read_missions(directory, agent)
    lines = _in_order([*missions], read_general(directory, agent))
    settings = _settings(line.event for line in lines)
    settings.outdated = is_outdated(directory, agent)
    if not (lines or settings.outdated):
        return None
    events = [line.event for line in lines]
    open_calls, closed = _calls(events)
    open_missions = [read_unfinished(mission.id, mission.events) for mission in missions if mission.done is None]
    _end_aborted(open_missions, events)
    return Resumption(
        events=events,
        offset=lines[-1].offset if lines else MAX_OFFSET,
        missions=open_missions,
        calls=open_calls,
        closed=dict([*closed.items()][-_CLOSED:]),
        unanswered=_unanswered(events),
        settings=settings,
        lessons=_lessons(events),
        abort=_abort(events),
    )


def _in_order(missions: Iterable[RecordedMission], general: Iterable[RecordLine]) -> list[RecordLine]:
    """The lines in order, with each event once, though it may be in several files."""
    by_number = {line.event.number: line for mission in missions for line in mission.lines}
    by_number.update((line.event.number, line) for line in general)
    return [by_number[number] for number in sorted(by_number)]


def _end_aborted(missions: Iterable[UnfinishedMission], events: Iterable[AgentEvent]) -> None:
    """End the missions of aborts: an abort ends them with its first event, whatever of it reached their own files."""
    aborts = ((event, EventKind.ABORT.data_of(event)) for event in events)
    aborted = {id for event, abort in aborts if abort and abort["phase"] == "start" for id in event.missions}
    for mission in missions:
        if mission.id in aborted:
            mission.end_state.end("aborted")


def _abort(events: Iterable[AgentEvent]) -> UnfinishedAbort | None:
    aborts = (EventKind.ABORT.data_of(event) for event in reversed([*events]))
    newest = next((abort for abort in aborts if abort is not None), None)
    if newest is None or newest["phase"] == "end":
        return None
    return UnfinishedAbort(reason=newest["reason"], rollback=newest["rollback"], others=newest["others"])


def _settings(events: Iterable[AgentEvent]) -> OperatorSettings:
    found = OperatorSettings()
    for event in events:
        if pause := EventKind.PAUSE.data_of(event):
            found.mode, found.paused_for = Mode.PAUSED, pause.get("reason", "")
        elif event.kind == EventKind.RESUME:
            found.mode = Mode.RUNNING
        elif event.kind == EventKind.STEP:
            found.mode = Mode.STEPPING
        elif switch := EventKind.MODEL_SWITCH.data_of(event):
            found.model = switch["model"]
        elif console := EventKind.CONSOLE.data_of(event):
            found.watched = console["present"]
        elif skill_set := EventKind.SKILL_SET.data_of(event):
            found.skills[skill_set["skill"]] = skill_set["enabled"]
    return found


def _lessons(events: Iterable[AgentEvent]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for model, lesson in filter(None, map(lesson_of, events)):
        found.setdefault(model, []).append(lesson)
    return found


def _calls(events: Iterable[AgentEvent]) -> tuple[list[RecordedCall], dict[str, tuple[str, ...]]]:
    """The calls whose close was not delivered; and whose lists those were held to whose close was, by their ids."""
    found: dict[str, RecordedCall] = {}
    closed: dict[str, tuple[str, ...]] = {}
    for event in events:
        if begun := EventKind.CALL_OPEN.data_of(event):
            found[begun["call_id"]] = RecordedCall(
                call_id=begun["call_id"],
                skill=begun["skill"],
                missions=event.missions,
                arguments=begun["arguments"],
                agents=tuple(begun.get("agents", ())),
            )
            continue
        said, tool_event = delivered_by(event), tool_event_of(event)
        if said and tool_event and (call_id := said.get("call_id")):
            skill = said.get("skill", tool_event.skill)
            call = found.setdefault(call_id, RecordedCall(call_id=call_id, skill=skill, missions=event.missions))
            call.last_seq = max(call.last_seq, tool_event.seq)
            if tool_event.type == "close":
                closed[call.call_id] = call.agents
    return [call for call_id, call in found.items() if call_id not in closed], closed


def _unanswered(events: Iterable[AgentEvent]) -> list[RecordedCall]:
    """The calls of the newest answers, of the agent and of each sub-mission, that have no result; earlier answers
    have all their results."""
    asked: dict[str, dict[str, RecordedCall]] = {}
    for event in events:
        sub = sub_of(event)
        if (answer := EventKind.ANSWER.data_of(event)) and answer["tool_calls"]:
            asked[sub] = {
                call["id"]: RecordedCall(
                    tool_call_id=call["id"], skill=call["name"], missions=event.missions, sub=sub
                )
                for call in answer["tool_calls"]
            }
            continue
        recorded = asked.get(sub, {}).get(tool_call_of(event))
        if recorded is None:
            continue
        if run := EventKind.CALL_RUN.data_of(event):
            recorded.arguments, recorded.agents = run["arguments"], tuple(run.get("agents", ()))
        elif begun := EventKind.CALL_OPEN.data_of(event):
            recorded.call_id = begun["call_id"]
        elif event.kind == EventKind.RESULT:
            del asked[sub][recorded.tool_call_id]
    return [call for calls in asked.values() for call in calls.values()]
