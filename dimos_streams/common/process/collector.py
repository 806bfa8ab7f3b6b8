"""The pace of Python's garbage collector: it looks seldom in a process that begins, and not at what it has begun
with."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_USUAL = gc.get_threshold()
_SELDOM = (300_000, 10, 10)


def collect_seldom() -> None:
    """Have the collector look seldom from now on: what a process imports stays, however often it is looked at."""
    gc.set_threshold(*_SELDOM)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Have the collector look seldom meanwhile. A pace that somebody has set stays: one that is more seldom, or
    never, and one that is set meanwhile."""
    before = gc.get_threshold()
    if 0 < before[0] < _SELDOM[0]:
        collect_seldom()
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _SELDOM[0]:
            gc.set_threshold(*before)


def keep_all_that_is_there() -> None:
    """Have the collector look as usual from now on, but at nothing that is there already.

    It lives as long as the process, and a look at all of it holds a loop up for 0.1 s.
    """
    gc.freeze()
    gc.set_threshold(*_USUAL)
