"""Errors in a skill, or before it begins, as its caller hears of them: the skill's own words, or a bug's id."""

from __future__ import annotations

import logging
import traceback

from dimos_streams.common.allowance import Allowance
from dimos_streams.common.process.internal_error import internal_error
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import SkillError

_logger = logging.getLogger(__name__)
_MAX_WHAT = 1000
_tracebacks = Allowance(1.0, 20.0)
"""Numbers of tracebacks per second, and at once: a skill that fails many times a second would leave room for nothing
else in the log."""


class ExitedError(Exception):
    """Raised for what would end the loop if a task let it pass; its cause is that."""


def skill_errors(error: BaseException) -> list[SkillError]:
    """Return the ``SkillError``s that an error consists of: a ``TaskGroup`` raises those of its tasks as one. There
    are none if a bug is among them."""
    if isinstance(error, SkillError):
        return [error]
    if not isinstance(error, BaseExceptionGroup):
        return []
    parts = [skill_errors(part) for part in error.exceptions]
    return [each for part in parts for each in part] if all(parts) else []


def logged_bug(call_id: str, skill: str, error: BaseException) -> str:
    """Log an error that is a bug, and return what the caller of the skill hears of it: an id, by which the log has
    the details."""
    error_id = f"{call_id}-error"
    what = redacted("".join(traceback.format_exception_only(error)).strip())  # also of one that can't say what it is
    shown = _tracebacks.take()
    more = "" if shown else " (there are too many of these for a traceback)"
    what = beginning(what, _MAX_WHAT)
    _logger.error("skill %s, %s: %s%s", skill, error_id, what, more, exc_info=error if shown else None)
    bug = error.__cause__ if isinstance(error, ExitedError) and error.__cause__ is not None else error
    return internal_error(error_id, bug)
