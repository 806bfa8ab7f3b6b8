"""Agents, as the calls of a recording show them.

What agents report to consoles is on the bus only while a console is open; where a recording has it, it is shown.
Otherwise an agent's state is read from the calls of its operators' skills: ``say`` passes its conversation on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from dimos_streams.operator.agents import public_name
from dimos_streams.operator.known_names import SAY
from dimos_streams.operator.messages.agent import (
    AgentEvent,
    AgentSnapshot,
    ConversationEntry,
    MissionView,
    QueueView,
)
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.operator.reporting import report_of
from dimos_streams.tool_stream.event import ToolEvent

NOT_RECORDED = "not recorded"
_ENTRIES, _TEXT, _MISSIONS = 50, 1000, 100
Mode = Literal["running", "paused", "stepping"]


@dataclass(frozen=True, slots=True)
class _ReplayedAgent:
    """The known state of one agent. Never changed, so that moments can share it."""

    model: str = NOT_RECORDED
    mode: Mode = "running"
    entries: tuple[ConversationEntry, ...] = ()
    missions: tuple[MissionView, ...] = ()
    state: str = "idle"
    """The state of its loop, as far as the conversation shows."""
    number: int = 0
    report: str = ""
    """The call in which it reports to consoles; empty if it does not."""
    reported: AgentSnapshot | None = None
    """The newest snapshot that it reported, or None if there is none."""


class Agents:
    """Takes events of calls, each once and in order."""

    def __init__(self, models: Mapping[str, str] | None = None) -> None:
        """``models`` are those of the recording's blueprint, by the agents' names."""
        self._models = dict(models or {})
        self._agents: dict[str, _ReplayedAgent] = {}

    def copy(self) -> Agents:
        """Return a copy of the agents at this moment."""
        found = Agents()
        found._models, found._agents = self._models, dict(self._agents)
        return found

    def take(self, event: ToolEvent) -> None:
        """Take an event of a call that everybody may read."""
        name, skill = event.module, event.skill
        if skill == public_name(name, SAY):
            self._agents[name] = self._said(self._known(name), event)
        elif event.type == "close" and event.outcome == "completed":
            mode = _mode_after(skill.removeprefix(public_name(name, "")), event)
            if mode is not None and name in self._agents:
                self._agents[name] = replace(self._agents[name], mode=mode)

    def snapshots(
        self, utime: int, names: Iterable[str], calls: Mapping[str, tuple[str, ...]], holds: Mapping[str, HoldView]
    ) -> dict[str, AgentSnapshot]:
        """The agents of these names at a time of the log, with the ids of the open ``calls`` of each, and what the
        gates say of its ``holds``."""
        return {
            name: self._known(name).reported or self._snapshot(utime, name, calls.get(name, ()), holds.get(name))
            for name in names
        }

    def _snapshot(self, utime: int, name: str, calls: tuple[str, ...], hold: HoldView | None) -> AgentSnapshot:
        agent = self._known(name)
        return AgentSnapshot(
            agent=name,
            utime=agent.entries[-1].utime if agent.entries else 0,
            number=agent.number,
            state=agent.state,
            mode=agent.mode,
            hold=hold,
            model=agent.model,
            queue=QueueView(waiting=0, capacity=0),
            missions=agent.missions,
            calls=calls,
            conversation=agent.entries,
        )

    def _known(self, name: str) -> _ReplayedAgent:
        return self._agents.get(name) or _ReplayedAgent(model=self._models.get(name, NOT_RECORDED))

    def report(self, event: ToolEvent) -> AgentEvent | None:
        """Take an event of an agent's report to consoles, and return what happened in it, or None if it does not
        say."""
        agent = self._known(event.module)
        if event.type == "close":
            self._agents[event.module] = replace(agent, report="", reported=None)
            return None
        try:
            reported = report_of(event.data)
        except ValueError:  # of another version; what calls tell is there all the same
            return None
        if isinstance(reported, AgentSnapshot):
            self._agents[event.module] = replace(agent, report=event.call_id, reported=reported)
            return None
        return reported

    def _said(self, agent: _ReplayedAgent, event: ToolEvent) -> _ReplayedAgent:
        """Return the state after an event of an operator's talk with the agent."""
        if event.type == "open":
            mission = MissionView(id=event.call_id, text=_words(event)[:_TEXT], utime=event.utime)
            return replace(agent, missions=(*agent.missions, mission)[-_MISSIONS:])
        if event.type == "close":
            missions = tuple(mission for mission in agent.missions if mission.id != event.call_id)
            agent = replace(agent, missions=missions, state=agent.state if missions else "idle")
            if event.outcome == "completed" or event.data.get("result") is not None:
                return agent  # the conversation says how a mission ended
            return _with_entry(agent, event, {"role": "error", "text": event.text, "is_error": True})
        entry = event.data.get("entry")
        if not isinstance(entry, dict) or entry.get("role") == "progress":
            return agent
        return _with_entry(agent, event, entry)


def _with_entry(agent: _ReplayedAgent, event: ToolEvent, entry: Mapping[str, Any]) -> _ReplayedAgent:
    role = str(entry.get("role", "note"))
    number = agent.number + 1
    line = ConversationEntry(
        number=number,
        role=role,
        text=str(entry.get("text", ""))[:_TEXT],
        utime=event.utime,
        skill=str(entry.get("skill", "")),
        call_id=str(entry.get("call_id", "")),
        is_error=bool(entry.get("is_error")),
        missions=(event.call_id,),
    )
    state = agent.state
    if role == "assistant":
        state = "executing" if entry.get("tool_calls") else "idle"
    elif role in ("operator", "tool", "event"):
        state = "streaming"  # its model is given that
    return replace(agent, entries=(*agent.entries, line)[-_ENTRIES:], number=number, state=state)


def _words(event: ToolEvent) -> str:
    arguments = event.data.get("arguments")
    return str(arguments.get("text", "")) if isinstance(arguments, dict) else ""


def _mode_after(command: str, event: ToolEvent) -> Mode | None:
    """The mode of an agent after an operator's command was carried out, or None where that does not change it."""
    if command in ("pause", "resume"):
        return "paused" if command == "pause" else "running"
    if command == "step":
        return "running" if event.text == "step mode is off" else "stepping"
    return None
