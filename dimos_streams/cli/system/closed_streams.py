"""Standard streams that were closed when the command began, ``>&-`` in a shell."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Let what goes to, or comes from, standard streams that are closed go nowhere.

    Python has None in their places, and the next files that are opened would get their descriptors: uvloop ends a
    process whose sockets do. So they are taken before anything else is opened, and stay taken whatever becomes of the
    streams.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free is this one
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
