"""Log lines about things that may happen a million times."""

from __future__ import annotations

import logging

from dimos_streams import clock


class LimitedLog:
    """Passes on one line per second and format, and says how many it swallowed in between.

    The number of formats is the number of places in the code, so the table needs no bound.
    """

    def __init__(self, logger: logging.Logger, period_s: float = 1.0) -> None:
        self._logger = logger
        self._period_s = period_s
        self._last: dict[str, float] = {}
        self._swallowed: dict[str, int] = {}

    def warning(self, format: str, *args: object) -> None:
        """Log at level warning, at most once a period."""
        self._log(logging.WARNING, format, args, exc_info=False)

    def exception(self, format: str, *args: object) -> None:
        """Log at level error with the traceback of the exception in hand, at most once a period."""
        self._log(logging.ERROR, format, args, exc_info=True)

    def _log(self, level: int, format: str, args: tuple[object, ...], *, exc_info: bool) -> None:
        now = clock.monotonic()
        last = self._last.get(format)
        # Another loop's clock may stand before the time that was noted.
        if last is not None and 0 <= now - last < self._period_s:
            self._swallowed[format] = self._swallowed.get(format, 0) + 1
            return
        self._last[format] = now
        swallowed = self._swallowed.pop(format, 0)
        if swallowed:
            format, args = format + " (and %d more like it)", (*args, swallowed)
        self._logger.log(level, format, *args, exc_info=exc_info)
