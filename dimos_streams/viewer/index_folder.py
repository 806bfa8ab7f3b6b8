"""The folder in which a view keeps the index of its recording."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dimos_streams.common.process.run_owner import is_ended_run, own

_PREFIX = "dimos-streams-view-"


@contextmanager
def index_folder() -> Iterator[Path]:
    """Yield a folder that is deleted at the end of the block. Those of views that were killed are deleted first."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if is_ended_run(left):
            shutil.rmtree(left, ignore_errors=True)
    # Another view may be about to delete it, too, once it is nobody's.
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as made:
        descriptor = own(Path(made))
        try:
            yield Path(made)
        finally:
            os.close(descriptor)
