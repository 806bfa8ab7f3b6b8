"""The search for code that this process does not import, because its folder is not on Python's path."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator

_MOST_FOLDERS = 200
_UP = 2


def where_it_lies(module: str, beside: str = "") -> str:
    """Return the message that a module lies in a folder nearby, and how it is found there; empty if it does not.

    Nearby are the working directory and the folder ``beside``, with those around them, and what is in the first.
    """
    for root in _roots(beside):
        for end in (".py", f"{os.sep}__init__.py"):
            file = os.path.join(root, *module.split(".")) + end
            if os.path.isfile(file):
                return f"; {shown_path(file)} is there: `{command_with(root)}` finds it"
    return ""


def command_with(folder: str) -> str:
    """Return how commands begin that find the code in a folder."""
    on_path = ":$PYTHONPATH" if os.environ.get("PYTHONPATH") else ""
    return f"PYTHONPATH={shlex.quote(shown_path(folder))}{on_path} dimos-streams …"


def shown_path(path: str) -> str:
    """Return a path as it is from here, or the whole of it if that is shorter."""
    return min(os.path.relpath(path), os.path.abspath(path), key=len)


def folders_in(folder: str | os.PathLike[str]) -> list[str]:
    """Return the names of the folders in a folder, in order, without hidden ones; of very many the first."""
    try:
        with os.scandir(folder) as entries:
            return sorted(each.name for each in entries if each.name[0] != "." and _is_folder(each))[:_MOST_FOLDERS]
    except OSError:  # it was deleted, or may not be read
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _roots(beside: str) -> Iterator[str]:
    """Yield the folders on which a module may be looked for, but for those on which it was."""
    searched = {os.path.realpath(entry) for entry in sys.path}
    for root in (*_with_those_around(beside), *folders_in(os.curdir), *_with_those_around(os.curdir)):
        if os.path.realpath(root) not in searched:
            yield root


def _with_those_around(folder: str) -> list[str]:
    return [os.path.join(folder or os.curdir, *[os.pardir] * up) for up in range(_UP + 1)]
