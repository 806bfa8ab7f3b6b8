"""The task that a supervisor gives to a worker, and the messages that it sends to it later."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import ChangedSettings, ProcessPlan

BEGIN, STOP = "begin", "stop"
"""The messages of a supervisor to a worker: that it may begin, with what operators have set by then, and why it is to
end with the signal that follows."""


@dataclass(frozen=True)
class WorkerTask:
    """The task that a worker is given at its start."""

    process: ProcessPlan
    options: RunOptions
    log: Path | None
    live: ChangedSettings = field(default_factory=dict)
    """The settings that an operator has changed in earlier lives of its modules."""
    supplied: frozenset[str] | None = None
    """The channels that anything sends to, for a worker that begins later than the run, whose code may have changed;
    None for others."""
    beside: tuple[str, ...] = ()
    """The names of all modules that begin together with its own in other processes."""
    kept_ports: frozenset[str] = frozenset()
    """The names of the modules whose ports the run keeps, see ``RunContext``."""
    waits: bool = False
    """True if it prepares itself, reports that, and begins when it is told to: its predecessor still runs."""
