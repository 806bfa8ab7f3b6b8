"""The room on the disk of a file with a hub's database that events leave to orders."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dimos_streams.hub.storage.rows import StorageUnavailableError

_LEFT = 32_000_000
"""Bytes of the disk, or a sixteenth of it, that events leave to orders, and to what is written to drop something."""


def check_room(file: Path, free_inside: Callable[[], int]) -> None:
    """Raise ``StorageUnavailableError`` if events would take the last room of a file's disk. Where half of that is
    left, they may take what is free inside the file. If that is not there, whoever writes to it says so."""
    try:
        disk = os.statvfs(file)
    except OSError:
        return
    left, last = disk.f_bavail * disk.f_frsize, min(_LEFT, disk.f_blocks * disk.f_frsize // 16)
    if left < last and not (left >= last // 2 and free_inside() >= last):
        raise StorageUnavailableError(
            f"the hub's database {file} stores no events while its disk is full but for {left // 1000} kB: the last"
            f" {last // 1000} are for orders, such as a stop"
        )
