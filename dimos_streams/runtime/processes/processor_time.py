"""The time that a process has waited for a processor: on a busy machine that is not its own fault."""

from __future__ import annotations


def waited_for_processor(pid: int) -> float:
    """Return the seconds for which the first thread of a process was ready to run since its start, but others ran
    instead.

    It is 0 if the system does not say, and for a process that has gone.
    """
    try:
        with open(f"/proc/{pid}/schedstat", "rb", buffering=0) as file:
            _, waited_ns, _ = file.read().split()
    except (OSError, ValueError):
        return 0.0
    return int(waited_ns) / 1e9
