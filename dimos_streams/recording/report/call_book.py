"""The calls of a recording, folded from their events, with what was said in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dimos_streams.operator.agents import is_conversation, is_look, outcome_for_people
from dimos_streams.recording.report.markup import cut
from dimos_streams.recording.report.model import ConversationLine, KeyMoment, ReportedCall
from dimos_streams.recording.report.series import LARGEST, PlottedSeries
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.opening import opening_of

MAX_CALLS = 2000
MAX_LINES = 3000
_MAX_MOMENTS = 200
_MAX_SERIES = 16
_MAX_TEXT = 2000
_HIDDEN = frozenset({"progress"})
"""Roles of a conversation's entries that calls tell better."""


class CallBook:
    """Takes events, each once and in order."""

    def __init__(self) -> None:
        self.calls: dict[str, ReportedCall] = {}
        self.left_out = 0
        self.lines: list[ConversationLine] = []
        self.lines_left_out = 0
        self.series: dict[str, PlottedSeries] = {}
        self.goals: list[tuple[str, tuple[float, float]]] = []
        self._talks: set[str] = set()
        """Callers whose calls are shown in a conversation: agents that somebody talks to."""

    def take(self, event: ToolEvent) -> None:
        """Take the next one. How programs look at agents is left out: nobody has called that."""
        if is_look(event):
            return
        call = self._call_of(event)
        if call is None:
            return
        call.text = event.text or call.text
        if event.type == "progress":
            call.progress += 1
        else:
            self._milestone(call, event)
        self._numbers(call, event)
        if is_conversation(event):
            self._talks.add(event.module)
            self._hear(event)
        elif event.caller not in self._talks and event.type != "progress":
            self._add_event(call, event)

    def _call_of(self, event: ToolEvent) -> ReportedCall | None:
        call = self.calls.get(event.call_id)
        if call is not None:
            return call
        if len(self.calls) >= MAX_CALLS:
            self.left_out += event.type == "open"
            return None
        call = ReportedCall(event.call_id, event.skill, event.module, event.caller, event.utime)
        self.calls[event.call_id] = call
        return call

    def _milestone(self, call: ReportedCall, event: ToolEvent) -> None:
        named = event.data.get("event")
        if len(call.moments) < _MAX_MOMENTS:
            name = named if isinstance(named, str) else ""
            call.moments.append(KeyMoment(event.utime, event.type, cut(event.text, _MAX_TEXT), name))
        if event.type == "open":
            self._open(call, event)
        elif event.type == "update":
            call.updates += 1
        elif event.type == "gap":
            call.gaps += event.data["to_seq"] - event.data["from_seq"] + 1
        elif event.type == "close":
            call.closed, call.outcome = event.utime, outcome_for_people(event)
            call.result = event.data.get("result")

    def _open(self, call: ReportedCall, event: ToolEvent) -> None:
        opening = opening_of(event.data)
        call.arguments, call.resources, call.parent = opening.arguments, opening.resources, opening.parent
        x, y = (_drawn(call.arguments.get(name)) for name in ("x", "y"))
        if x is not None and y is not None:
            self.goals.append((call.skill, (x, y)))

    def _numbers(self, call: ReportedCall, event: ToolEvent) -> None:
        """Keep what is measured while a call goes on; a conversation repeats what is shown already."""
        if event.type not in ("progress", "update") or is_conversation(event):
            return
        for name, value in event.data.items():
            measured = _drawn(value)
            title = f"{call.skill}: {name}"
            if measured is None or (title not in self.series and len(self.series) >= _MAX_SERIES):
                continue
            self.series.setdefault(title, PlottedSeries()).add(event.utime, measured)

    def _hear(self, event: ToolEvent) -> None:
        """Read the entry of a conversation that an operator's call passes on."""
        entry = event.data.get("entry")
        if event.type == "close" and event.outcome != "completed":
            text, mission = cut(event.text, _MAX_TEXT), event.call_id
            is_error = outcome_for_people(event) != "cancelled"
            self._add(ConversationLine(event.utime, "error", event.module, text, is_error=is_error, mission=mission))
        if not isinstance(entry, dict) or (role := str(entry.get("role", ""))) in _HIDDEN:
            return
        text = str(entry.get("text", ""))
        asked = entry.get("tool_calls")
        calls = [_asked(one) for one in asked if isinstance(one, dict)] if isinstance(asked, list) else []
        who = {"operator": event.caller, "assistant": event.module}.get(role) or str(entry.get("skill") or role)
        head, _, rest = text.partition("\n") if role in ("tool", "event") else (text, "", "")
        said = "\n".join(part for part in (head, *(name for name, _ in calls)) if part)
        details = "\n".join(part for part in (rest, *(arguments for _, arguments in calls)) if part)
        is_error = bool(entry.get("is_error"))
        texts = cut(said, _MAX_TEXT), cut(details, _MAX_TEXT)
        self._add(ConversationLine(event.utime, role, who, *texts, is_error, mission=event.call_id))

    def _add_event(self, call: ReportedCall, event: ToolEvent) -> None:
        """A line for an event of a call that no conversation tells."""
        who = call.caller if event.type == "open" else call.skill
        is_bad_end = event.type == "close" and event.outcome != "completed"
        text = f"{event.outcome}: {event.text}" if is_bad_end else event.text
        details = "" if event.type != "close" or call.result is None else _json(call.result)
        is_error = event.type == "gap" or (event.type == "close" and event.outcome not in ("completed", "cancelled"))
        role = "call" if event.type == "open" else "event"
        self._add(ConversationLine(event.utime, role, who, cut(text, _MAX_TEXT), cut(details, _MAX_TEXT), is_error))

    def _add(self, line: ConversationLine) -> None:
        if len(self.lines) < MAX_LINES:
            self.lines.append(line)
        else:
            self.lines_left_out += 1


def _asked(call: Mapping[str, Any]) -> tuple[str, str]:
    """A call that a model asks for: its skill, and its arguments as JSON."""
    return f"→ {call.get('skill', '?')}", str(call.get("arguments", ""))


def _drawn(value: Any) -> float | None:
    """A number that has a place on a drawing; None for all else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) <= LARGEST else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
