"""A cache of what is made of the same objects again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from dimos_streams.common.newest_entries import NewestEntries

T = TypeVar("T")
V = TypeVar("V")


class Memo(Generic[T, V]):
    """Remembers what ``make`` gave for the newest ``capacity`` objects; objects that are equal are not the same.

    It is for the messages of a conversation, which each iteration looks at again, and which need no hash.
    """

    def __init__(self, make: Callable[[T], V], capacity: int = 1000) -> None:
        self._make = make
        self._known = NewestEntries[int, tuple[T, V]](capacity)

    def __len__(self) -> int:
        return len(self._known)

    def of(self, thing: T) -> V:
        """Return the value for an object, made now if need be."""
        known = self._known.get(id(thing))
        return known[1] if known is not None else self.again(thing)

    def again(self, thing: T) -> V:
        """Make the value for an object anew."""
        made = self._make(thing)
        # The object is kept with it: while it is, nothing else can have its id.
        self._known[id(thing)] = (thing, made)
        return made
