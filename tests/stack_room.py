"""Room on Python's stack for all that is called from one place.

Python takes its stack from the system and gives it back in pieces of 16 KB, about sixty calls, as many as pytest has
on it under a test. Where a loop of the test goes over the end of a piece, each of its calls takes one and gives it
back: most of the system's time under all tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LARGE = 66_000
"""The size of a frame in words. The piece that is taken for it, 2 ** n bytes, has as much room again."""


def with_room(run: Callable[[], T]) -> T:
    """Return what ``run`` returns. Its calls are on the rest of the piece that the frame of this one has taken."""
    return run()


with_room.__code__ = with_room.__code__.replace(co_stacksize=_LARGE)
