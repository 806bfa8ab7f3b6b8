"""The names of the log files of a run's processes."""

from __future__ import annotations


def log_name(process: str) -> str:
    """Return the name of a process's log file without its ending: its label, ``robot1/skills`` as
    ``robot1.skills``."""
    return process.replace("/", ".")
