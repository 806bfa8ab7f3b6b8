"""The note of a journal on the clock: when it was set, so that a later process on the same boot knows it too."""

from __future__ import annotations

import logging

from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.common.boot_time import boot
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.schemas.frozen_model import FrozenModel

CLOCK_NOTE = "clock"
"""The name of the note in the journal."""
_SET_S = 5.0
"""Change of the wall clock against the steady one, in seconds, from which on it was set."""
_logger = logging.getLogger(__name__)


class ClockNote(FrozenModel):
    """The relation of the wall clock to the steady one, and the events of before it was set to that."""

    boot: str
    """The id of the boot since which the steady clock runs; empty where the system does not say it."""
    ahead_s: float
    """The time, in seconds, by which the wall clock is ahead of the steady one."""
    undated: int = 0
    """The newest offset when the clock was last set."""
    undated_until: float = 0.0
    """The time on ``clock.steady`` until which all events up to that offset are kept."""

    @staticmethod
    def of_text(text: str | None) -> ClockNote:
        """The note that is kept as a text; how the clocks stand now if there is none, or none of this boot."""
        if text is not None:
            try:
                note = ClockNote.model_validate_json(text)
            except ValidationError as error:
                _logger.warning("the note of the clock can't be read: %s", first_problem(error, "it"))
            else:
                if note.boot and note.boot == boot():
                    return note
        return ClockNote(boot=boot(), ahead_s=_ahead_s())

    def looked_at(self, last_offset: int, age_s: float) -> ClockNote:
        """This note, or another one if the clock was set meanwhile: what came before may be of any age, and counts as
        of now."""
        ahead_s = _ahead_s()
        if abs(ahead_s - self.ahead_s) <= _SET_S:
            return self
        return ClockNote(boot=self.boot, ahead_s=ahead_s, undated=last_offset, undated_until=clock.steady() + age_s)


def _ahead_s() -> float:
    return clock.utime() / 1e6 - clock.steady()
