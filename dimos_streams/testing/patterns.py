"""Patterns of events that a test waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from dimos_streams.errors import UserError, suggest
from dimos_streams.tool_stream.event import EventType, Outcome, ToolEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPattern:
    """Fits events whose fields are as given; fields that are not given may be anything."""

    type: str | None = None
    skill: str | None = None
    module: str | None = None
    caller: str | None = None
    call_id: str | None = None
    text: str | None = None
    outcome: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ``UserError`` for a type or an outcome that no event has: nothing would ever fit."""
        known = {"type": get_args(EventType), "outcome": tuple(map(str, Outcome))}
        for name, valid in known.items():
            value = getattr(self, name)
            if value is not None and value not in valid:
                near = suggest(str(value), valid)
                raise UserError(f"no event has the {name} {value!r}{near} (valid: {', '.join(valid)})")

    def fits(self, event: ToolEvent) -> bool:
        """Return whether an event is as the pattern says."""
        wanted = (
            (self.type, event.type),
            (self.skill, event.skill),
            (self.module, event.module),
            (self.caller, event.caller),
            (self.call_id, event.call_id),
            (self.outcome, event.outcome),
        )
        if any(value is not None and value != found for value, found in wanted):
            return False
        if self.text is not None and self.text not in event.text:
            return False
        return all(name in event.data and event.data[name] == value for name, value in self.data.items())

    def misspelt(self, skills: Iterable[str], modules: Iterable[str]) -> str:
        """Return which of its names are of no skill or module that there is, each with the nearest one."""
        said = ""
        for kind, name, known in (("skill", self.skill, set(skills)), ("module", self.module, set(modules))):
            if name is not None and name not in known:
                said += f"; no {kind} is called {name!r}{suggest(name, sorted(known))}"
        return said

    def __str__(self) -> str:
        names = ("type", "skill", "module", "caller", "call_id", "text", "outcome")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        return f"event({', '.join(f'{name}={value!r}' for name, value in (given | dict(self.data)).items())})"


def event(
    type: str | None = None,
    *,
    skill: str | None = None,
    module: str | None = None,
    caller: str | None = None,
    call_id: str | None = None,
    text: str | None = None,
    outcome: str | None = None,
    **data: Any,
) -> EventPattern:
    """A pattern: ``event("update", skill="follow_person", text="Lost")``.

    ``text`` is a part of the event's text; other names are values in its data: ``event("update", event="match")``.
    """
    return EventPattern(
        type=type,
        skill=skill,
        module=module,
        caller=caller,
        call_id=call_id,
        text=text,
        outcome=outcome,
        data=data,
    )
