"""The events of a run for those who watch it come up and end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

RunEventKind = Literal[
    "starting", "ready", "hung", "recovered", "failed", "restarting", "kept", "stopping", "stopped"
]
"""What happened. ``hung``: its loop does not run. ``recovered``: its loop runs again, without a restart. ``kept``: it
goes on with its old code, because the new code is broken."""

ProcessState = Literal["new", "starting", "ready", "hung", "waiting", "stopped", "failed", "dead"]
"""``waiting``: it ended and will be restarted after a pause. ``dead``: it has ended, and the run has
not noted that yet."""


@dataclass(frozen=True, kw_only=True)
class RunEvent:
    """An event of a process, or of one module in it."""

    kind: RunEventKind
    process: str
    module: str = ""
    """The module that is meant; empty if it is the whole process."""
    text: str = ""
    log: Path | None = None


OnRunEvent = Callable[[RunEvent], None]


@dataclass(frozen=True, kw_only=True)
class ProcessView:
    """The current state of a process of a run."""

    label: str
    modules: tuple[str, ...]
    pid: int | None
    state: ProcessState
    restarts: int
    why: str = ""
    """The reason for its last restart, and the seconds until the next one, or for its failure if it is not restarted;
    empty once it is ready."""
    failing: str = ""
    """The reason why it can't be relied on: it is down or hangs, or has ended by itself again and again; or empty."""
