"""A mission: what an operator's input sets going, until nothing of it is left to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.operator.holding import STOPPED
from dimos_streams.operator.messages.agent import Usage
from dimos_streams.tool_stream.event import Outcome, ToolEvent

_UNFINISHED = 20


class ActionGuard(Protocol):
    """Watches what a mission's model does over all its turns, and says when it is too much."""

    def observe(
        self,
        batch: Sequence[tuple[str, Mapping[str, Any]]],
        exempt: frozenset[str] = frozenset(),
        *,
        at: float | None = None,
    ) -> tuple[str, str] | None:
        """Take in one answer's calls. Returns the reason for which the mission is to end, and a sentence on it."""


class Mission:
    """Counts the work that an operator's input caused: waiting messages, turns, calls that are open.

    It is over when the count comes back to zero. ``text``, ``reason`` and ``why`` are those of its newest turn. A
    sub-mission is work of its ``parent``, which is not over before it, and pays for it.
    """

    def __init__(
        self,
        id: str,
        on_over: Callable[[], None] = lambda: None,
        *,
        input: str = "",
        parent: Mission | None = None,
        on_end: Callable[[Mission], None] = lambda mission: None,
    ) -> None:
        """``on_end`` hears when it is ended early."""
        self.id = id
        self.input = input
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        """How many missions it is part of."""
        self.began_utime = clock.utime()
        self.text = ""
        self.reason = ""
        self.why = ""
        """The reason as a text for people, where it does not speak for itself."""
        self.spent = Usage()
        self.failed_call = ""
        """The text of the first of its calls that failed; a call that was cancelled has not failed."""
        self.stopped = ""
        """Why an operator's stop of the robot has ended one of its calls, or empty."""
        self.cancelled_call = ""
        """Which call, and why, if what became of its newest call is that somebody else has cancelled it."""
        self.ended = ""
        """Why it was ended before its work was done (``cancelled``, ``aborted``, ``deadline``, …): no turn of it
        alone goes on, and the updates of its calls cause none."""
        self.unfinished: tuple[str, ...] = ()
        """The newest of its calls that were given up, with what holds the robot: for people."""
        self._on_over = on_over
        self._on_end = on_end
        self.guard: ActionGuard | None = None
        """Watches it over its turns; the first turn makes it."""
        self._held = 0
        self._parts: set[Mission] = set()

    @property
    def over(self) -> bool:
        """Whether nothing of it is left."""
        return self._held == 0

    def hold(self) -> None:
        """One more piece of work."""
        if self._held == 0 and self.parent is not None:
            self.parent.hold()
            self.parent._parts.add(self)
        self._held += 1

    def release(self) -> None:
        """A piece of work is done."""
        self._held -= 1
        if self._held == 0:
            self._on_over()
            if self.parent is not None:
                self.parent._parts.discard(self)
                self.parent.release()

    def end(self, reason: str, why: str = "") -> bool:
        """End it early, and the sub-missions it has; False if that was so already, then the first reason stays.

        ``why`` says more of it to people.
        """
        if self.ended:
            return False
        self.ended = reason
        self.reason, self.why = reason, why
        self._on_end(self)
        for part in tuple(self._parts):
            part.end(reason, why)
        return True

    def leave(self, unfinished: str) -> None:
        """Note a call that may still run when the mission is over, here and in the missions that it is part of."""
        self.unfinished = (*self.unfinished, unfinished)[-_UNFINISHED:]
        if self.parent is not None:
            self.parent.leave(unfinished)

    def spend(self, spent: Usage) -> None:
        """Count what a model has used, here and in the missions that it is part of."""
        self.spent += spent
        if self.parent is not None:
            self.parent.spend(spent)


def ids(missions: Iterable[Mission]) -> tuple[str, ...]:
    """Their ids, in order."""
    return tuple(mission.id for mission in missions)


def all_ended(missions: Sequence[Mission]) -> bool:
    """Whether there are missions and each was ended early."""
    return bool(missions) and all(mission.ended for mission in missions)


def note_failure(missions: Iterable[Mission], skill: str, text: str) -> None:
    """A call of missions has failed."""
    for mission in missions:
        mission.failed_call = mission.failed_call or f"{skill}: {text}"


def note_stop(missions: Iterable[Mission], event: ToolEvent | None) -> None:
    """What ended a call of missions may have been an operator's stop of the robot."""
    why = stopped_by(event)
    for mission in missions:
        mission.stopped = mission.stopped or why


def stopped_by(event: ToolEvent | None) -> str:
    """Why an operator's stop of the robot has ended a call with this event; empty if it did not."""
    if event is None or event.outcome is not Outcome.CANCELLED or not event.text.startswith(STOPPED):
        return ""
    return event.text


def note_cancel(missions: Iterable[Mission], cancelled: str) -> None:
    """A call of missions was answered or has closed; ``cancelled`` is what ``cancelled_by_another`` says of that."""
    for mission in missions:
        mission.cancelled_call = cancelled


def cancelled_by_another(event: ToolEvent | None, *, withdrawn: bool) -> str:
    """Which call has ended with this event because somebody else than its agent has cancelled it, and why; empty if
    none has. ``withdrawn`` says whether the agent itself wanted it to end."""
    if event is None or withdrawn or event.outcome is not Outcome.CANCELLED:
        return ""
    return f"{event.skill}: {event.text}"


def roots(missions: Iterable[str]) -> tuple[str, ...]:
    """The ids of the missions that these are, or are part of; a sub-mission's id begins with its parent's."""
    return tuple(dict.fromkeys(mission.partition("/")[0] for mission in missions))


def with_parents(missions: Iterable[Mission]) -> list[Mission]:
    """Missions and those that they are part of, each once."""
    found: dict[Mission, None] = {}
    for mission in missions:
        each: Mission | None = mission
        while each is not None:
            found[each] = None
            each = each.parent
    return list(found)
