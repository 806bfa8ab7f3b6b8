"""The reports of operators' commands: what an abort and an undo have done."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from dimos_streams.common.readable.plural import plural
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.operator.messages.kept_report import KeptReport

How: TypeAlias = Literal["undone", "failed", "impossible"]


class Undone(FrozenModel):
    """The end of one call that was to be taken back."""

    call_id: str
    skill: str
    arguments: dict[str, Any]
    how: How
    text: str
    """The text of the undoing skill, or why the call can't be undone."""

    def __str__(self) -> str:
        return f"{self.skill} (call {self.call_id}): {self.how}: {self.text}"


class UndoReport(KeptReport):
    """The report of an undo."""

    asked: int
    """The number of calls that were to be taken back."""
    found: int
    """The number of those that there were, ``asked`` at most."""
    undone: tuple[Undone, ...]
    """The calls that were taken back or could not be, newest first."""

    def __str__(self) -> str:
        count = sum(each.how == "undone" for each in self.undone)
        number = f"{count} of {self.asked} undone" if self.asked > 1 else ""
        more = "else " if self.found else ""
        all_there = "" if self.found == self.asked else f"there is nothing {more}of the agent's to take back"
        summary = "; ".join(part for part in (number, all_there) if part)
        return self.with_unkept("\n".join(part for part in (*map(str, self.undone), summary) if part))


class AbortReport(HoldView, KeptReport):
    """The report of an abort: what it did, and what the velocity gates said while the calls ended."""

    reason: str
    missions: tuple[str, ...]
    """Ids of the missions that it ended."""
    cancelled: tuple[str, ...]
    """Ids of the calls that were open."""
    unfinished: tuple[str, ...]
    """Ids of the calls that were given up, now or before: they may still run, and the agent stays paused."""
    stays_paused: bool = False
    """True if the operator had paused the agent before: only a ``resume`` ends that."""
    undone: tuple[Undone, ...] = ()
    """The calls that were taken back or could not be, newest first."""

    def __str__(self) -> str:
        missions, calls = len(self.missions), len(self.cancelled)
        ended = f"{plural(missions, 'mission')}, {plural(calls, 'call')}"
        if not missions and not calls:
            ended += " (those of others are not the agent's to end: `say stop` ends these, too)"
        lines = [f"aborted: {ended}; the robot {'is' if self.unfinished else 'was'} {super().__str__()}"]
        if self.unfinished:
            lines.append(f"may still run: {', '.join(self.unfinished)}; the agent stays paused")
        elif self.stays_paused:
            lines.append("the agent stays paused: `resume` ends that")
        lines[-1] = self.with_unkept(lines[-1])
        return "\n".join([*lines, *map(str, self.undone)])
