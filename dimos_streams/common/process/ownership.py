"""The owner of a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def stranger_with(path: Path) -> int | None:
    """Return the id of the user who owns a file or a directory, or the link to it, and is neither this one nor root;
    None if there is no such user, and for a path that is not there.

    A file's owner can read and change it whatever its mode is by then, a directory's can put another file in the
    place of each that is in it, also where it is sticky, and a link's can lead it elsewhere. For root nobody is a
    stranger: it works in directories of users as they do. Raises ``OSError``.
    """
    for look in (path.lstat, path.stat):
        try:
            owner = look().st_uid
        except FileNotFoundError:
            return None
        if owner != 0 and os.geteuid() not in (0, owner):
            return owner
    return None


def refuse_strangers(path: Path) -> None:
    """Raise ``PermissionError`` if what is to be written under a path is a stranger's, or a stranger's link leads to
    it, where all users may write for instance: who owns a file can read it, and who owns a link has chosen which of
    this user's files is replaced. See ``stranger_with``; raises ``OSError`` as that does."""
    if (user := stranger_with(path)) is not None:
        why = f"the file, or the link to it, belongs to user {user}, who could read it or lead it elsewhere"
        raise PermissionError(errno.EPERM, why)
