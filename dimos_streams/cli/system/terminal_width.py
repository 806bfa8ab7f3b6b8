"""The width of the terminal, as libraries that write there learn it."""

from __future__ import annotations

import os
import re
import shutil

_COLUMNS = "COLUMNS"
_NARROWEST, _USUAL = 20, 80
_LEAST = {_COLUMNS: _NARROWEST, "TERMINAL_WIDTH": _NARROWEST, "LINES": 1}
"""The variables that say how large a terminal is, with the least that is of use."""


def widen() -> None:
    """Have text laid out for a usual width where the terminal, or whoever says how wide it is, has none in which it
    could be read: libraries would write nothing at all, or fail."""
    for name, least in _LEAST.items():
        given = os.environ.get(name)
        if given is not None and not (re.fullmatch("[0-9]{1,4}", given) and int(given) >= least):
            del os.environ[name]
    if shutil.get_terminal_size((_USUAL, 0)).columns < _NARROWEST:
        os.environ[_COLUMNS] = str(_USUAL)
