"""The text that callers hear of a bug. The rest may hold secrets: it belongs into the log, in a line with the id."""

from __future__ import annotations

import re

from dimos_streams import clock

_ON_STANDARD_ERROR = "its traceback is on standard error"
_PLACE = re.compile(rf"(internal error \S+ \(\w+\)): (?:`dimos-streams logs [^`]*` shows it|{_ON_STANDARD_ERROR})")


class _Log:
    """The log of this process: what `dimos-streams logs` has to be told to show it; None if no file has it."""

    selector: str | None = None


def logs_are_shown_by(selector: str | None) -> None:
    """Note what `dimos-streams logs` has to be told to show what this process logs, ``RunOptions.log_selector``; None
    if it all goes to standard error."""
    _Log.selector = selector


def internal_error(error_id: str, error: BaseException) -> str:
    """The text of an error that is a bug: its id, its type, and where the rest is."""
    place = _ON_STANDARD_ERROR
    if _Log.selector is not None and not clock.is_virtual():
        place = f"`dimos-streams logs {_Log.selector} | grep -F -A 40 {error_id}` shows it"
    return f"internal error {error_id} ({type(error).__name__}): {place}"


def without_place(text: str) -> str:
    """A text in which no internal error says where the rest is, which is another place in each run."""
    return _PLACE.sub(r"\1", text)
