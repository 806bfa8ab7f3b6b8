"""A mission: what an operator's input sets going, until nothing of it is left to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from dimos_streams import clock
from dimos_streams.agent.missions.end_reasons import explained
from dimos_streams.agent.missions.end_state import CallFact, EndState
from dimos_streams.operator.messages.agent import Usage

_UNFINISHED = 20
_SHOWN_INPUT = 100


class ActionGuard(Protocol):
    """Watches what a mission's model does over all its turns, and says when it is too much."""

    def observe(
        self,
        batch: Sequence[tuple[str, Mapping[str, Any]]],
        exempt: frozenset[str] = frozenset(),
        *,
        at: float | None = None,
    ) -> tuple[str, str] | None:
        """Take in one answer's calls. Return the reason for which the mission is to end and a sentence on it, or
        None."""


class Mission:
    """Counts the work that an operator's input caused: waiting messages, turns, calls that are open.

    It is over when the count comes back to zero. A sub-mission is work of its ``parent``: the parent is not over
    before it, and what it uses counts for the parent.
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
        """``on_end`` is called when it is ended early."""
        self.id = id
        self.input = input
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        """The number of missions that it is part of."""
        self.began_utime = clock.utime()
        self.known_orders: frozenset[int] = frozenset()
        """The numbers of the orders to stop the robot, or to release it, that were known when it began."""
        self.end_state = EndState()
        """Its state; it was ended early if there is a reason in ``ended``: then no turn of it alone goes on, and the
        updates of its calls cause none."""
        self.spent = Usage()
        self.unfinished: tuple[str, ...] = ()
        """The newest of its calls that were given up, with what holds the robot: for people."""
        self._on_over = on_over
        self._on_end = on_end
        self.guard: ActionGuard | None = None
        """The guard that watches it over its turns; the first turn makes it."""
        self._work = 0
        self._parts: dict[Mission, None] = {}

    @property
    def text(self) -> str:
        """See ``EndState``."""
        return self.end_state.text

    @property
    def reason(self) -> str:
        """See ``EndState``."""
        return self.end_state.reason

    @property
    def why(self) -> str:
        """See ``EndState``."""
        return self.end_state.why

    @property
    def ended(self) -> str:
        """See ``EndState``."""
        return self.end_state.ended

    @property
    def over(self) -> bool:
        """True if nothing of it is left."""
        return self._work == 0

    def retain(self) -> None:
        """Count one more piece of work."""
        if self._work == 0 and self.parent is not None:
            self.parent.retain()
            self.parent._parts[self] = None
        self._work += 1

    def release(self) -> None:
        """Count a piece of work as done."""
        self._work -= 1
        if self._work == 0:
            self._on_over()
            if self.parent is not None:
                self.parent._parts.pop(self, None)
                self.parent.release()

    def end(self, reason: str, why: str = "") -> bool:
        """End it early, with the sub-missions that it has. Return False if that was so already; then the first reason
        stays.

        ``why`` says more of it to people.
        """
        if not self.end_state.end(reason, why):
            return False
        self._on_end(self)
        for part in tuple(self._parts):
            part.end(reason, why)
        return True

    def let_go(self) -> None:
        """Report it as over if nothing of it is left to do, also if nothing ever was."""
        if self.over:
            self.retain()
            self.release()

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


def retain_all(missions: Iterable[Mission]) -> None:
    """Count one more piece of work in each of these missions."""
    for mission in missions:
        mission.retain()


def release_all(missions: Iterable[Mission]) -> None:
    """Count a piece of work of each of these missions as done."""
    for mission in missions:
        mission.release()


def ids(missions: Iterable[Mission]) -> tuple[str, ...]:
    """The ids of missions, in order."""
    return tuple(mission.id for mission in missions)


def all_ended(missions: Sequence[Mission]) -> bool:
    """Return whether there are missions and each was ended early."""
    return bool(missions) and all(mission.ended for mission in missions)


def going_on(missions: Iterable[Mission]) -> tuple[Mission, ...]:
    """The missions that were not ended early."""
    return tuple(mission for mission in missions if not mission.ended)


def note_call(missions: Collection[Mission], fact: CallFact) -> None:
    """Note what has become of a call of these missions, also in those that they are part of."""
    for mission in with_parents(missions):
        mission.end_state.note_call(fact, own=mission in missions)


def roots(missions: Iterable[str]) -> tuple[str, ...]:
    """The ids of the outermost missions that these are, or are part of; a sub-mission's id begins with its
    parent's."""
    return tuple(dict.fromkeys(mission.partition("/")[0] for mission in missions))


def input_of(open_missions: Mapping[str, Mission], missions: Iterable[str]) -> str:
    """The input with which missions, or those that they are part of, began; shortened. Those that are over have
    none."""
    known = [open_missions[root] for root in roots(missions) if root in open_missions]
    return "; ".join(mission.input for mission in known)[:_SHOWN_INPUT]


def why_ended(open_missions: Mapping[str, Mission], missions: Iterable[str]) -> str:
    """Why missions, or those that they are part of, have ended early, for people; empty if none has, or all are
    over."""
    known = [open_missions[root] for root in roots(missions) if root in open_missions]
    return "; ".join(dict.fromkeys(explained(each.ended, each.why) for each in known if each.ended))


def with_parents(missions: Iterable[Mission]) -> list[Mission]:
    """Missions and those that they are part of, each once."""
    found: dict[Mission, None] = {}
    for mission in missions:
        each: Mission | None = mission
        while each is not None:
            found[each] = None
            each = each.parent
    return list(found)
