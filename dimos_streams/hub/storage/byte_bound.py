"""The bound of what a hub keeps in bytes: which of its oldest events go when all of them take too much."""

from __future__ import annotations

from dimos_streams.hub.storage.engines.engine import Engine
from dimos_streams.hub.storage.rows import KeptRange

_AT_MOST = 4
"""The room that dropping events gives, at most, by their own bytes: the records of their calls go with them, which
may have each text twice."""
_SHARES = 16
"""The bound is this many shares: one may come before it is looked at again, one while events are dropped, and one is
dropped at once. Open calls whose events are gone may take one."""


def share_of(max_bytes: int) -> int:
    """The bytes that may come before it is looked again whether something has to go."""
    return max_bytes // _SHARES


def to_keep(engine: Engine, kept: KeptRange, max_bytes: int) -> KeptRange | None:
    """The part of a range that is to be kept so that it takes less, where it takes too much of ``max_bytes``; None
    for all of it. Ask again once the rest is dropped: how much that gives is known then."""
    most = _most(max_bytes)
    if kept.first > kept.last or not is_used(engine, most):
        return None
    first = engine.first_without(kept, (engine.used() - most + share_of(max_bytes)) // _AT_MOST)
    return KeptRange(first, kept.last) if first > kept.first else None


def is_near(engine: Engine, max_bytes: int) -> bool:
    """True if the whole database takes so much of ``max_bytes`` that something may have to go."""
    return engine.size() > _most(max_bytes)


def is_used(engine: Engine, size: int) -> bool:
    """True if what is stored takes more than ``size`` bytes. What a whole database takes is known faster."""
    return engine.size() > size and engine.used() > size


def _most(max_bytes: int) -> int:
    return max_bytes - 2 * share_of(max_bytes)
