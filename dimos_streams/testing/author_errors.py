"""The errors that the author of a test can mend, as pytest shows them."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from types import TracebackType

from dimos_streams.errors import SkillArgumentError, UnknownSkillError, UserError

_PACKAGE = Path(__file__).parents[1]
_STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def shorten(error: BaseException) -> None:
    """End the traceback of what the author has given wrongly where it has come into this package; any other error
    stays as it is."""
    if not isinstance(error, UserError | UnknownSkillError | SkillArgumentError):
        return
    last, entry = None, error.__traceback__
    while entry is not None:
        last = entry if _is_the_authors(entry) else last
        entry = entry.tb_next
    if last is not None:
        last.tb_next = None


def _is_the_authors(entry: TracebackType) -> bool:
    path = Path(entry.tb_frame.f_code.co_filename)
    return not (path.is_relative_to(_PACKAGE) or path.is_relative_to(_STANDARD_LIBRARY))
