"""The file of rollbacks, the settings that modules are to have again: a bridge that starts again asks for them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from dimos_streams import clock
from dimos_streams.common.boot_time import SinceBoot, since_boot, utime_now
from dimos_streams.common.invalid import problem_of
from dimos_streams.common.process.disk import forget_outdated, load_state, outdate, replace_text
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.secrets import redacted

SUFFIX = ".settings.json"
"""The suffix of the file, which is beside the bridge's journal and otherwise has the journal's name."""

ROLLBACK_WITHIN_S = 60.0
"""Time, in seconds, after which a module that was not heard is not asked any more."""

_logger = logging.getLogger(__name__)


class Rollback(FrozenModel):
    """The old values of one module's settings, which it is to have again unless a change of them was committed."""

    module: str
    settings: dict[str, str]
    """The values by the paths of their settings, as the texts that assign them."""
    caller: str
    """The caller who had ordered the new values."""
    until_utime: int = 0
    """Time until which the module is waited for, µs since the Unix epoch as the clock was set when it was written."""
    until: SinceBoot = Field(default_factory=SinceBoot)
    """The same time by the machine's boot."""

    def waited_for(self, seconds: float = ROLLBACK_WITHIN_S) -> Rollback:
        """Return this rollback with a module that is waited for from now on."""
        until_utime = clock.utime() + round(seconds * 1e6)
        return self.model_copy(update={"until_utime": until_utime, "until": since_boot(seconds)})

    def left_s(self) -> float:
        """Return the time, in seconds, for which the module is still waited for, however the clock was set."""
        until_utime = utime_now(self.until_utime, self.until)
        return min((until_utime - clock.utime()) / 1e6, ROLLBACK_WITHIN_S)


class _RollbackRecord(FrozenModel):
    """The file's content."""

    rollbacks: tuple[Rollback, ...] = ()


def load(path: Path) -> tuple[Rollback, ...]:
    """Read what a bridge of the run has written; empty if there is none, or, with a log entry, if it is
    unreadable."""
    try:
        saved = load_state(path)
        if saved.outdated:
            raise ValueError("it is out of date, because what came later could not be written")
        return _RollbackRecord.model_validate_json(saved.text).rollbacks if saved.text else ()
    except (OSError, ValueError) as error:
        why = problem_of(error, "it")
        _logger.error("%s can't be read (%s): settings that were to be taken back may hold on", path, why)
        return ()


def save(path: Path, rollbacks: Iterable[Rollback], *, decided: bool = False) -> None:
    """Write the rollbacks atomically, or remove the file if there are none; log why if that was not possible.
    Waits for the disk. Secrets are not written.

    If an operator has ``decided`` on some that were written, and these can't be left out, the next bridge asks for
    none: it would take back what was decided.
    """
    record = _RollbackRecord(rollbacks=tuple(map(_without_secrets, rollbacks)))
    try:
        if record.rollbacks:
            replace_text(path, record.model_dump_json())
        else:
            path.unlink(missing_ok=True)
        forget_outdated(path)
    except OSError as error:
        _logger.error("settings that are to be taken back can't be written to %s: %s", path, error)
        if decided:
            with contextlib.suppress(OSError):  # the first error says more
                outdate(path)


def _without_secrets(rollback: Rollback) -> Rollback:
    kept = {path: text for path, text in rollback.settings.items() if redacted(text) == text}
    return rollback.model_copy(update={"settings": kept})
