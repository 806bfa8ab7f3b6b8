"""Reads from a record the state of an agent that died."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.record.agent_events import EventKind, tool_event_of
from dimos_streams.agent.record.begun_calls import AGENTS
from dimos_streams.agent.record.read_record import RecordedMission, RecordLine, read_general, read_missions
from dimos_streams.agent.resumption.state import (
    OperatorSettings,
    RecordedCall,
    Resumption,
    UnfinishedAbort,
    UnfinishedMission,
)
from dimos_streams.agent.resumption.unfinished import read_unfinished
from dimos_streams.agent.subagents.sub_mission import SUB
from dimos_streams.operator.messages.agent import AgentEvent

_CLOSED = 1000


def read_resumption(directory: Path, agent: str) -> Resumption | None:
    """Read the record of an agent; return None if there is none."""
    missions = read_missions(directory, agent)
    lines = _in_order([*missions], read_general(directory, agent))
    if not lines:
        return None
    events = [line.event for line in lines]
    open_calls, closed = _calls(events)
    open_missions = [read_unfinished(mission.id, mission.events) for mission in missions if mission.done is None]
    _end_aborted(open_missions, events)
    return Resumption(
        events=events,
        offset=lines[-1].offset,
        missions=open_missions,
        calls=open_calls,
        closed=dict([*closed.items()][-_CLOSED:]),
        unanswered=_unanswered(events),
        settings=_settings(events),
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
    aborted = {id for event in events if _begins_abort(event) for id in event.missions}
    for mission in missions:
        if mission.id in aborted:
            mission.end_state.end("aborted")


def _begins_abort(event: AgentEvent) -> bool:
    return event.kind == EventKind.ABORT and event.data["phase"] == "start"


def _abort(events: Iterable[AgentEvent]) -> UnfinishedAbort | None:
    newest = next((event for event in reversed([*events]) if event.kind == EventKind.ABORT), None)
    if newest is None or not _begins_abort(newest):
        return None
    data = newest.data
    return UnfinishedAbort(reason=data["reason"], rollback=data["rollback"], others=data["others"])


def _settings(events: Iterable[AgentEvent]) -> OperatorSettings:
    found = OperatorSettings()
    for event in events:
        if event.kind == EventKind.PAUSE:
            found.mode = Mode.PAUSED
        elif event.kind == EventKind.RESUME:
            found.mode = Mode.RUNNING
        elif event.kind == EventKind.STEP:
            found.mode = Mode.STEPPING
        elif event.kind == EventKind.MODEL_SWITCH:
            found.model = event.data["model"]
        elif event.kind == EventKind.CONSOLE:
            found.watched = event.data["present"]
        elif event.kind == EventKind.SKILL_SET:
            found.skills[event.data["skill"]] = event.data["enabled"]
    return found


def _lessons(events: Iterable[AgentEvent]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event in events:
        if event.kind == EventKind.NOTE and "lesson" in event.data:
            found.setdefault(event.data["model"], []).append(event.data["lesson"])
    return found


def _calls(events: Iterable[AgentEvent]) -> tuple[list[RecordedCall], dict[str, tuple[str, ...]]]:
    """The calls whose close was not delivered; and whose lists those were held to whose close was, by their ids."""
    found: dict[str, RecordedCall] = {}
    closed: dict[str, tuple[str, ...]] = {}
    for event in events:
        data = event.data
        if event.kind == EventKind.CALL_OPEN:
            found[data["call_id"]] = RecordedCall(
                call_id=data["call_id"],
                skill=data["skill"],
                missions=event.missions,
                arguments=data["arguments"],
                agents=tuple(data.get(AGENTS, ())),
            )
        elif data.get("call_id") and (tool_event := tool_event_of(event)) is not None:
            skill = data.get("skill", tool_event.skill)
            call = found.setdefault(
                data["call_id"], RecordedCall(call_id=data["call_id"], skill=skill, missions=event.missions)
            )
            call.last_seq = max(call.last_seq, tool_event.seq)
            if tool_event.type == "close":
                closed[call.call_id] = call.agents
    return [call for call_id, call in found.items() if call_id not in closed], closed


def _unanswered(events: Iterable[AgentEvent]) -> list[RecordedCall]:
    """The calls of the newest answers, of the agent and of each sub-mission, that have no result; earlier answers
    have all their results."""
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
        recorded = asked.get(sub, {}).get(data.get("tool_call_id", ""))
        if recorded is None:
            continue
        if event.kind == EventKind.CALL_RUN:
            recorded.arguments, recorded.agents = data["arguments"], tuple(data.get(AGENTS, ()))
        elif event.kind == EventKind.CALL_OPEN:
            recorded.call_id = data["call_id"]
        elif event.kind == EventKind.RESULT:
            del asked[sub][recorded.tool_call_id]
    return [call for calls in asked.values() for call in calls.values()]
