"""Pickles that leave a trace when somebody reads them: a folder."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Trap:
    """A folder that is made by whoever unpickles one of the payloads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.payloads = tuple(pickle.dumps(self, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1))
        """One for each protocol; dimos' frames have the newest."""
        pickle.loads(self.payloads[-1])
        assert self.sprung, "the trap does not work"
        path.rmdir()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.path),)

    @property
    def newest(self) -> bytes:
        return self.payloads[-1]

    @property
    def sprung(self) -> bool:
        return self.path.exists()
