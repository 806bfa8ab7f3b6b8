"""The file of the holds on a robot, so that a gate whose process was killed goes on holding when it is back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import Field

from dimos_streams.common.invalid import problem_of
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.disk import load_state, save_state
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.operator.holding import MAX_SOURCES, MAX_VALID_S, shown_reason

_AGAIN_S: Final = 1.0
"""Seconds after which a failed write is tried again."""

_Asked = frozenset[tuple[str, float]]
_log = LimitedLog(logging.getLogger(__name__))


class _HeldSource(FrozenModel):
    source: str = Field(min_length=1)
    utime: int
    seq: int
    valid_s: float = Field(gt=0.0, le=MAX_VALID_S)
    reason: str = ""


class _HoldRecord(FrozenModel):
    """The file's content."""

    holds: tuple[_HeldSource, ...] = Field(max_length=MAX_SOURCES + 1)


class HoldFile:
    """The file of one gate in its run's directory. It is written when a source begins or ends a hold, or asks for
    another validity; a message that repeats a hold, even with another reason, changes nothing."""

    def __init__(self, run_dir: Path, gate: str) -> None:
        """``gate`` is the module's name."""
        self.path = run_dir / f"{gate.replace('/', '.')}.holds.json"
        self.trouble = ""
        """The reason why the file can't be read or written, for operators; empty if it can."""
        self.complete = True
        """False if there may have been other holds besides those that ``load`` has returned."""
        self._written: _Asked | None = frozenset()
        self._next_at = 0.0
        self._busy = False

    def load(self, now: float) -> tuple[Hold, ...]:
        """Return the newest messages of those that held when the gate before ended, as far as that can be known. If
        it can't be, the file stays for ``MAX_VALID_S``, so that a gate that is killed before that does not take it
        for all that was asked."""
        try:
            saved = load_state(self.path)
            record = _HoldRecord(holds=()) if saved.text is None else _HoldRecord.model_validate_json(saved.text)
        except (OSError, ValueError) as error:
            self._doubt(f"{self.path} can't be read ({problem_of(error, 'it')})", now)
            return ()
        holds = tuple(Hold(hold=True, **held.model_dump()) for held in record.holds)
        if saved.outdated:
            self._doubt(f"who held last could not be written to {self.path}", now)
        else:
            self._written = _asked(holds)
        return holds

    def is_due(self, holds: Sequence[Hold], now: float) -> bool:
        """Return whether to write these, the newest messages of all that hold now."""
        return not self._busy and now >= self._next_at and _asked(holds) != self._written

    def begin(self) -> None:
        """Have nothing else be due until ``save`` is done."""
        self._busy = True

    def save(self, holds: Sequence[Hold], now: float) -> None:
        """Write the file, atomically. Waits for the disk; ``trouble`` says if that was not possible, and what was
        written before is out of date then."""
        held = [_held_source(hold) for hold in holds]
        try:
            save_state(self.path, _HoldRecord(holds=tuple(held)).model_dump_json())
            self._written, self.trouble = _asked(holds), ""
        except OSError as error:
            self.not_saved(error, now)
        finally:
            self._busy = False

    def not_saved(self, error: OSError, now: float) -> None:
        """Note that the file was not written, and is to be soon."""
        self._written, self._next_at, self._busy = None, now + _AGAIN_S, False
        self._fail(f"who holds can't be written to {self.path}: {error.strerror or error}")

    def _doubt(self, why: str, now: float) -> None:
        self.complete, self._written, self._next_at = False, None, now + MAX_VALID_S
        self._fail(f"nothing moves the base for {MAX_VALID_S:g} s: {why}")

    def _fail(self, trouble: str) -> None:
        self.trouble = trouble
        _log.warning("%s", trouble)


def _held_source(hold: Hold) -> _HeldSource:
    return _HeldSource(
        source=hold.source,
        utime=hold.utime,
        seq=hold.seq,
        valid_s=min(hold.valid_s, MAX_VALID_S),
        reason=shown_reason(hold.reason),
    )


def _asked(holds: Sequence[Hold]) -> _Asked:
    return frozenset((hold.source, min(hold.valid_s, MAX_VALID_S)) for hold in holds)
