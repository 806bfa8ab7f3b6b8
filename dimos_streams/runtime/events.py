"""The events of a run for those who watch it come up and end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class RunEvent:
    """Something happened to a process, or to one module in it."""

    kind: Literal["starting", "ready", "hung", "recovered", "failed", "restarting", "kept", "stopping", "stopped"]
    """``hung``: its loop does not run. ``recovered``: it runs again, without a restart.
    ``kept``: it goes on with its old code, because what would take its place is broken."""
    process: str
    module: str = ""
    """Empty where the whole process is meant."""
    text: str = ""
    log: Path | None = None


OnRunEvent = Callable[[RunEvent], None]


@dataclass(frozen=True, kw_only=True)
class ProcessView:
    """A process of a run as it stands."""

    label: str
    modules: tuple[str, ...]
    pid: int | None
    state: Literal["new", "starting", "ready", "hung", "waiting", "stopped", "failed"]
    """``waiting``: it ended and will be restarted after a pause."""
    restarts: int
    why: str = ""
    """Why it was restarted last, and in how many seconds it is again; empty once it is ready."""
