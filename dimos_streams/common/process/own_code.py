"""Errors in somebody's own code, which are reported in one line: the place in that code, or on demand a traceback."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from pathlib import Path

from dimos_streams.common.printable import printable_lines

DEBUG = "DIMOS_STREAMS_DEBUG"
"""The environment variable that asks for the tracebacks of errors that are told in one line."""
_OF_OTHERS = ("<", f"{Path(__file__).parents[2]}{os.sep}", *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
"""Beginnings of the paths of code that is nobody's own: that of Python, of this package and of installed ones."""


def raised_at(error: BaseException) -> str:
    """Return ``" (file:line)"`` of the innermost line of own code that an error has passed, or an empty text."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}:{error.lineno})"
    frames = reversed(traceback.extract_tb(error.__traceback__))
    own = next((frame for frame in frames if not frame.filename.startswith(_OF_OTHERS)), None)
    return "" if own is None else f" ({own.filename}:{own.lineno})"


def show_if_debugging(error: BaseException) -> None:
    """Write the traceback of an error to standard error if the environment asks for tracebacks."""
    if os.environ.get(DEBUG):
        sys.stderr.write(printable_lines("".join(traceback.format_exception(error))))
