"""Standard streams that were closed when the command began, ``>&-`` in a shell."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Let what goes to, or comes from, standard streams that are closed go nowhere: Python has None in their places,
    and the next file that is opened would get their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
