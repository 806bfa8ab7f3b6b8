"""The time that a process has waited for a processor: on a busy machine that is not its own fault."""

from __future__ import annotations

from pathlib import Path


def waited_for_processor(pid: int) -> float:
    """Return the seconds for which the first thread of a process was ready to run since its start, but others ran
    instead.

    It is 0 if the system does not say, and for a process that has gone.
    """
    try:
        _, waited_ns, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    except (OSError, ValueError):
        return 0.0
    return int(waited_ns) / 1e9
