"""Work that a process has given up waiting for: it may go on until the process ends, and that end does not wait for
it."""

from __future__ import annotations

import threading
from typing import Any

threads: list[threading.Thread] = []
"""Threads that the end of the process must not wait for."""


def never_collect(thing: Any) -> None:
    """Keep an object as it is, to the end of the process and beyond.

    A task that swallows whatever is raised in it would swallow the end of its coroutine too, when that is collected:
    it would go on there, without a loop, and hold up whoever collects it for ever.
    """
    import ctypes  # which takes time that no other command has to pay

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
