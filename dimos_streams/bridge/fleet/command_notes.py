"""Notes of a hub's commands that outlive a robot's restarts, in the journal's database: the keys of those that it has
taken, its answers, and the last order to stop."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Set

from pydantic import BaseModel, ConfigDict, ValidationError

from dimos_streams import clock
from dimos_streams.common.invalid import first_problem
from dimos_streams.fleet.commands import Answer
from dimos_streams.fleet.lanes import Lane
from dimos_streams.fleet.last_order import LastOrder, OrderNote
from dimos_streams.journal.journal import Journal

PREFIX = "command/"
"""The beginning of the names of the notes of commands; their keys follow."""
LAST_ORDER = "last order of a hub"
"""The name of the note of the last order."""
KEEP_S = 3600.0
"""Minimum time, in seconds, for which keys are remembered, many times as long as a command is valid."""
MAX_NOTES = 5000
"""Maximum number of commands of each lane that are remembered. If more come in an hour, those that stop, release or
cancel take the place of the oldest of their lane; all others are an attack or a mistake, and refused."""
_MAX_BYTES = 16 * 1024 * 1024
_SMALL = 1000
"""The size, in bytes, up to which a note's answer is not worth letting go of."""
MAX_OWED = 100
"""Maximum number of commands of one key that are owed its answer: nobody asks again so often."""
_GONE = "it was carried out; the answer is not kept, there are too many"

_logger = logging.getLogger(__name__)


class CommandNote(BaseModel):
    """The record of a command."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    utime: int
    """Time at which it was taken, µs since the Unix epoch."""
    at: float = 0.0
    """Time at which it was taken or restored, on ``clock.steady``: a robot's wall clock may be set."""
    call: str = ""
    """The name of the call that it is to begin, see ``call_of``; empty if it begins none."""
    lane: Lane = "others"
    answer: Answer | None = None
    """Its answer; None while it is carried out, and for ever if the bridge has ended meanwhile."""
    settled: bool = True
    """True if the answer holds for whoever asks again; otherwise the bridge is asked again then."""
    owed: tuple[int, ...] = ()
    """The ids under which the hub has not taken the answer yet."""


class CommandNotes:
    """The newest commands, oldest first, in memory and in the journal. Use from the loop only."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._notes: OrderedDict[str, CommandNote] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._earlier: Mapping[str, CommandNote] = {}
        self._earlier_calls: Set[str] = frozenset()
        self._earlier_until = 0.0
        self.last_order = LastOrder(lambda note: journal.note(LAST_ORDER, note.model_dump_json()))
        """The last order that older calls do not survive."""

    def restore(self) -> None:
        """Restore what was noted before a restart."""
        if (order := self._journal.notes(LAST_ORDER).get(LAST_ORDER)) is not None:
            try:
                self.last_order.restore(OrderNote.model_validate_json(order))
            except ValidationError as error:
                _logger.warning("the note of a hub's last order can't be read: %s", first_problem(error, "it"))
        found: list[tuple[str, CommandNote]] = []
        for name, value in self._journal.notes(PREFIX).items():
            try:
                found.append((name.removeprefix(PREFIX), CommandNote.model_validate_json(value)))
            except ValidationError as error:
                _logger.warning("the note of a hub's command can't be read: %s", first_problem(error, "it"))
        for key, note in sorted(found, key=lambda each: each[1].utime):
            self._notes[key] = note.model_copy(update={"at": clock.steady()})
            self._sizes[key] = 0 if note.answer is None else len(note.model_dump_json())

    def take_over(self, calls: Mapping[str, CommandNote], orders: Iterable[OrderNote]) -> None:
        """Go on with what other runs of this robot have noted: the commands of which a call may have begun, for
        ``KEEP_S`` from now on, and their last orders."""
        self._earlier, self._earlier_until = calls, clock.steady() + KEEP_S
        self._earlier_calls = {note.call for note in calls.values()}
        for order in orders:
            self.last_order.restore(order)

    def is_of_earlier_run(self, call: str) -> bool:
        """Return whether another run of this robot may have begun a call."""
        return call in self._earlier_calls and clock.steady() <= self._earlier_until

    def earlier_answer(self, key: str) -> Answer | None:
        """The answer of another run of this robot that holds for whoever asks by the key of its command again."""
        note = self._earlier.get(key)
        return note.answer if note is not None and note.settled else None

    def get(self, key: str) -> CommandNote | None:
        """The note of a command, None if there is none."""
        return self._notes.get(key)

    def answer_to(self, key: str, command_id: int) -> Answer | None:
        """The answer to a command that is not to be carried out: the one that it got before, or the one that holds
        for its key. None if there is neither."""
        note = self._notes.get(key)
        if note is None or note.answer is None:
            return None
        was_answered = command_id == note.answer.id or command_id in note.owed
        return note.answer if note.settled or was_answered else None

    def begin(self, key: str, call: str = "", lane: Lane = "others") -> bool:
        """Note that a command is about to be carried out, which is to begin ``call``; return False if there are
        too many of its lane to remember one more."""
        self._forget_old()
        if key not in self._notes and not self._has_room(lane):
            return False
        self._notes.pop(key, None)  # so that the oldest stay first
        self._set(key, CommandNote(utime=clock.utime(), at=clock.steady(), call=call, lane=lane))
        return True

    def note_answer(self, key: str, answer: Answer, *, settled: bool) -> Answer:
        """Note an answer, which is owed to the hub from now on. Return it, without its body if there is no room."""
        # If the machine has slept meanwhile, its note may be so old that it was forgotten.
        note = self._notes.get(key) or CommandNote(utime=clock.utime(), at=clock.steady())
        if not self._make_room(len(answer.model_dump_json())):
            answer = _bare(answer)
        owed = (*(each for each in note.owed if each != answer.id), answer.id)[-MAX_OWED:]
        self._set(key, note.model_copy(update={"answer": answer, "settled": settled, "owed": owed}))
        return answer

    def note_delivered(self, key: str, command_id: int) -> None:
        """Note that the hub has an answer."""
        note = self._notes.get(key)
        if note is not None:
            owed = tuple(each for each in note.owed if each != command_id)
            self._set(key, note.model_copy(update={"owed": owed}))

    def owed(self) -> list[tuple[str, Answer]]:
        """The answers that the hub has not taken, oldest first, each with the id of the command that it is to."""
        return [
            (key, note.answer.model_copy(update={"id": command_id}))
            for key, note in self._notes.items()
            if note.answer is not None
            for command_id in note.owed
        ]

    def _set(self, key: str, note: CommandNote) -> None:
        text = note.model_dump_json()
        self._notes[key], self._sizes[key] = note, len(text)
        self._journal.note(PREFIX + key, text)

    def _has_room(self, lane: Lane) -> bool:
        """Return whether one more command of a lane can be remembered, if need be in the place of the oldest one."""
        answered = [(key, note.answer is not None) for key, note in self._notes.items() if note.lane == lane]
        if len(answered) < MAX_NOTES:
            return True
        oldest = next((key for key, is_answered in answered if is_answered), None)
        if lane == "others" or oldest is None:
            return False
        self._forget(oldest)
        return True

    def _make_room(self, size: int) -> bool:
        """Let go of the oldest answers that the hub has, as far as one of ``size`` bytes needs their room; return
        whether it has that."""
        excess = sum(self._sizes.values()) + size - _MAX_BYTES
        for key, note in list(self._notes.items()):
            if excess <= 0:
                break
            if note.answer is not None and not note.owed and (had := self._sizes[key]) > _SMALL:
                self._set(key, note.model_copy(update={"answer": _bare(note.answer)}))
                excess -= had - self._sizes[key]
        return excess <= 0

    def _forget_old(self) -> None:
        """Forget what is old by both clocks, and owed to nobody."""
        oldest, taken_at = clock.utime() - int(KEEP_S * 1e6), clock.steady() - KEEP_S
        # All are looked at: one that was taken while the wall clock was ahead may stand before others that are old.
        old = [
            key for key, note in self._notes.items() if note.utime <= oldest and note.at <= taken_at and not note.owed
        ]
        for key in old:
            self._forget(key)

    def _forget(self, key: str) -> None:
        del self._notes[key], self._sizes[key]
        self._journal.note(PREFIX + key, None)


def _bare(answer: Answer) -> Answer:
    """An answer in whose place there is no room for more than that there was one."""
    return answer.model_copy(update={"status": 410, "body": {"status": 410, "detail": _GONE}})
