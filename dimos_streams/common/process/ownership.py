"""The owner of a file."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

_MAX_LINKS = 40
"""Maximum number of links that lead from one to the next; Linux follows no more."""


def stranger_with(path: Path) -> int | None:
    """Return the id of the user who owns a file or a directory, or one of the links that lead to it, and is neither
    this one nor root; None if there is no such user, and for a path that is not there.

    A file's owner can read and change it whatever its mode is by then, a directory's can put another file in the
    place of each that is in it, also where it is sticky, and a link's can lead it elsewhere. For root nobody is a
    stranger: it works in directories of users as they do. Raises ``OSError``.
    """
    return next((owner for owner in _owners(path) if owner != 0 and os.geteuid() not in (0, owner)), None)


def _owners(path: Path) -> Iterator[int]:
    """Yield the owner of each link from a path on, then of what they lead to, as far as all that is there."""
    link = path
    with contextlib.suppress(FileNotFoundError):
        for _ in range(_MAX_LINKS):
            yield link.lstat().st_uid
            if not link.is_symlink():
                break
            link = link.parent / link.readlink()
    # That of a process's open file has a name that leads nowhere, and can be followed.
    with contextlib.suppress(FileNotFoundError):
        yield path.stat().st_uid


def refuse_strangers(path: Path) -> None:
    """Raise ``PermissionError`` if what is to be written under a path is a stranger's, or one of the links to it is,
    where all users may write for instance: who owns a file can read it, and who owns a link has chosen which of this
    user's files is replaced. See ``stranger_with``; raises ``OSError`` as that does."""
    if (user := stranger_with(path)) is not None:
        why = f"the file, or a link to it, belongs to user {user}, who could read it or lead it elsewhere"
        raise PermissionError(errno.EPERM, why)
