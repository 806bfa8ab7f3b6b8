"""The folder in which a view keeps the index of its recording."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from dimos_streams.common.process.run_owner import owned_folder


def index_folder() -> AbstractContextManager[Path]:
    """Give the block a folder that is deleted at its end. Those of views that were killed are deleted first."""
    return owned_folder(Path(tempfile.gettempdir()), "dimos-streams-view-")
