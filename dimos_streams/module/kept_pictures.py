"""The picture files that modules keep among the files of a run: the newest ones."""

from __future__ import annotations

import threading
from pathlib import Path

from dimos_streams.messages.picture_files import check_claim

PICTURES = "pictures"
"""The folder for pictures in a run's directory."""
MAX_PICTURES = 1000
"""The largest number of pictures of a run; those of all its modules count."""
MAX_BYTES = 256_000_000
"""The largest size of all pictures of a run."""


def keep_picture(run_dir: Path, name: str, data: bytes) -> Path:
    """Write a picture into a run's directory, and remove the oldest ones for which there is no more room; return its
    path. A reader never finds half a picture, even while another thread writes the same one. Raises ``MessageError``
    for a picture that would take too much memory to be shown, and ``OSError``."""
    check_claim(data)
    path = run_dir / PICTURES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{name}.{threading.get_ident()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)  # half a picture is of no use
        raise
    _remove_oldest(path)
    return path


def _remove_oldest(newest: Path) -> None:
    """Remove the pictures beyond the bounds, but never the newest."""
    others = [(_time_and_size(path), path) for path in newest.parent.iterdir() if path != newest]
    left = MAX_BYTES - _time_and_size(newest)[1]
    for number, ((_, size), path) in enumerate(sorted(others, reverse=True), start=1):
        left -= size
        if number >= MAX_PICTURES or left < 0:
            path.unlink(missing_ok=True)


def _time_and_size(path: Path) -> tuple[int, int]:
    """Return when a file was written, in ns since the Unix epoch, and its bytes; zeros if it is gone: another process
    of the run keeps pictures, too."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
