"""Text on terminals and in logs: it shows no secret, commands no terminal, and looks like no line of its own."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from datetime import datetime
from types import TracebackType

from dimos_streams.common.readable.shortening import ends
from dimos_streams.common.readable.unseen import written_out
from dimos_streams.common.secrets import redacted

CONTINUATION = "  | "
"""The prefix of every line of a log record but the first, since a line that does not begin with a time is not a
record."""
_MAX_PART = 16_000
"""Maximum characters of a record's message, and of its traceback, which says at its end what went wrong."""


def printable(text: str, kept: str = "\t") -> str:
    """The text in one line, redacted. Controls, line ends, lone surrogates, marks that reorder text and whatever else
    nobody sees are shown as escapes, except the characters of ``kept``."""
    return written_out(redacted(text), kept)


def printable_lines(text: str) -> str:
    """The lines of a text, each as ``printable`` returns it; for texts of our own, which may have several."""
    return "\n".join(map(printable, text.split("\n")))


class LogFormatter(logging.Formatter):
    """Formats a record as ``logging.Formatter`` does, with a message in one line and a traceback set off from it.

    Behind the time stands its offset from UTC, so that it is one instant in any time zone, and when clocks change.
    """

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """See ``logging.Formatter``."""
        local = datetime.fromtimestamp(record.created).astimezone()
        return f"{super().formatTime(record, datefmt)}{local:%z}"

    def formatMessage(self, record: logging.LogRecord) -> str:
        """See ``logging.Formatter``."""
        record.message = printable(ends(redacted(record.message), _MAX_PART))
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        """See ``logging.Formatter``."""
        return _set_off(super().formatException(ei))  # type: ignore[arg-type]

    def formatStack(self, stack_info: str) -> str:
        """See ``logging.Formatter``."""
        return _set_off(super().formatStack(stack_info))


def show_tracebacks() -> None:
    """Let the tracebacks of what nobody catches, in any thread of this process, and the records of logs that are not
    set up, be shown as texts may be shown."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LogFormatter())
    sys.excepthook = _show_traceback
    threading.excepthook = lambda failed: _show_traceback(
        failed.exc_type, failed.exc_value or failed.exc_type(), failed.exc_traceback
    )


def _show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    text = "".join(traceback.format_exception(kind, error, trace))
    sys.stderr.write(printable_lines(ends(redacted(text), _MAX_PART)))


def _set_off(text: str) -> str:
    # Redacted before it is cut: a part of a secret is not recognised.
    return "\n".join(f"{CONTINUATION}{printable(line)}" for line in ends(redacted(text), _MAX_PART).split("\n"))
