"""Log lines about things that may happen a million times."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from dimos_streams import clock
from dimos_streams.common.printable import printable
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.common.secrets import redacted

_MAX_LINE = 500
_MAX_FORMATS = 1000
_RECORDS_PERIOD_S = 1.0


class LimitedLog:
    """Passes on one line per second and format, and says how many it swallowed in between.

    Exceptions count as alike if they also have their class and the place where they were raised in common. The
    numbers of formats and of such places are those of places in the code, so the table needs no bound.
    """

    def __init__(self, logger: logging.Logger, period_s: float = 1.0) -> None:
        self._logger = logger
        self._period_s = period_s
        self._last: dict[str, tuple[int, float]] = {}
        self._swallowed: dict[str, int] = {}

    def info(self, format: str, *args: object) -> None:
        """Log at level info, at most once a period."""
        self._log(logging.INFO, format, format, args, exc_info=False)

    def warning(self, format: str, *args: object) -> None:
        """Log at level warning, at most once a period."""
        self._log(logging.WARNING, format, format, args, exc_info=False)

    def exception(self, format: str, *args: object) -> None:
        """Log at level error with the traceback of the exception in hand, at most once a period."""
        self._log(logging.ERROR, f"{format}\n{_origin()}", format, args, exc_info=True)

    def _log(self, level: int, kind: str, format: str, args: tuple[object, ...], *, exc_info: bool) -> None:
        era, now = clock.era(), clock.monotonic()
        before, last = self._last.get(kind, (era, float("-inf")))
        if before == era and now - last < self._period_s:
            self._swallowed[kind] = self._swallowed.get(kind, 0) + 1
            return
        self._last[kind] = era, now
        swallowed = self._swallowed.pop(kind, 0)
        more = f" (and {swallowed} more like it)" if swallowed else ""
        self._logger.log(level, "%s%s", _one_line(format % args), more, exc_info=exc_info)


class LimitedRecords(logging.Filter):
    """A filter for another library's logger that passes one record of a kind per second, and drops the others."""

    def __init__(self, *, alike: Callable[[logging.LogRecord], str] | None = None) -> None:
        """``alike`` returns what records that count as one have in common; without it that is their format."""
        super().__init__()
        self._alike = alike or (lambda record: str(record.msg)[:_MAX_LINE])
        self._last: dict[str, tuple[int, float]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is passed on."""
        key, era, now = self._alike(record), clock.era(), clock.monotonic()
        before, last = self._last.get(key, (era, float("-inf")))
        if before == era and now - last < _RECORDS_PERIOD_S:
            return False
        if len(self._last) > _MAX_FORMATS:
            self._last.clear()
        self._last[key] = era, now
        return True


def _origin() -> str:
    """Return the class of the exception in hand, and where it was raised."""
    of, _, traceback = sys.exc_info()
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    where = "" if traceback is None else f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
    return f"{of} {where}"


def _one_line(text: str) -> str:
    """A text from outside for the log: it can neither fill the log nor forge lines in it."""
    text = redacted(text)  # before it is cut: a part of a secret is not recognised
    return printable(beginning(text, _MAX_LINE, f"… ({len(text)} characters)"))
