"""Approvals as people read them on a terminal: what decides is shown whole, or the text says how much is not."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dimos_streams.cli.terminal.output import table_lines
from dimos_streams.common.readable.plural import plural
from dimos_streams.operator.agents import note_in
from dimos_streams.operator.known_names import ANSWER, DECISION
from dimos_streams.operator.messages.agent import ApprovalView
from dimos_streams.operator.plan_steps import plan_steps
from dimos_streams.tool_stream.event import ToolEvent

HEADERS = ("ID", "AGENT", "SKILL", "ARGUMENTS", "WHY")
_IN_A_CELL = 80
_GOAL = 80
_INDENT = "    "


def approval_lines(views: Sequence[ApprovalView], headers: Sequence[str] = ()) -> list[str]:
    """Return a table of approvals; below each row, one a line, is what its cell has no room for."""
    rows = [[view.reference, view.agent, view.skill, _cell(view), view.reason] for view in views]
    lines = table_lines([headers, *rows] if headers else rows) if rows else []
    first = len(lines) - len(rows)
    found = lines[:first]
    for line, view in zip(lines[first:], views, strict=True):
        found += [line, *(f"{_INDENT}{detail}" for detail in details(view))]
    return found


def details(view: ApprovalView) -> list[str]:
    """Return what became of one that is decided, the steps of a plan, or arguments that are too long for a cell."""
    found = []
    if (steps := _steps(view)) is not None:
        found = [f"{number}. {call_text(step['skill'], step['arguments'])}" for number, step in enumerate(steps, 1)]
        goal = str(view.arguments.get("goal", ""))
        if goal:
            found.append(f"goal: {goal[:_GOAL]!r}{_more(len(goal) - _GOAL)}")
    elif len(_listed(view.arguments)) > _IN_A_CELL:
        found = list(_assignments(view.arguments))
    if view.state != "pending":
        found.append(standing(view))
    if view.hidden_characters:
        hidden = plural(view.hidden_characters, "character")
        found.append(f"{hidden} not shown: dimos-streams approvals {shlex.quote(view.id)}")
    return found


def standing(view: ApprovalView) -> str:
    """Return how it was decided, and what has become of the call."""
    return f"{view.decision}; {view.consequence}" if view.consequence else view.decision


def note_for_operators(event: ToolEvent) -> str:
    """Return an agent's note that it waits for a decision, or for the answer to a question, with the command that
    gives it; empty if the event is none of the kind."""
    text = note_in(event)
    return text if DECISION in text or text.endswith(ANSWER) else ""


def call_text(skill: str, arguments: Mapping[str, Any]) -> str:
    """Return a call, whole."""
    return f"{skill}({_listed(arguments)})"


def _cell(view: ApprovalView) -> str:
    steps = _steps(view)
    if steps is not None:
        return f"{view.arguments.get('plan')}, {plural(len(steps), 'step')}:"
    given = _listed(view.arguments)
    return given if len(given) <= _IN_A_CELL else f"{plural(len(view.arguments), 'argument')}:"


def _steps(view: ApprovalView) -> list[Mapping[str, Any]] | None:
    """Return the steps of a plan, or None if it is none."""
    is_whole = view.arguments.keys() <= {"plan", "goal", "steps"}
    return plan_steps(view.skill, view.module, view.arguments) if is_whole else None


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(_assignments(arguments))


def _assignments(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield arguments as ``--arg`` takes them."""
    for name, value in arguments.items():
        yield f"{name}={json.dumps(value, ensure_ascii=False)}"


def _more(characters: int) -> str:
    return f" (and {plural(characters, 'more character')})" if characters > 0 else ""
