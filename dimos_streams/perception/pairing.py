"""Puts together the images of one instant."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

T = TypeVar("T")


class Pairing(Generic[T]):
    """Collects parts by their stamps until all parts of an instant are there.

    At most `capacity` instants are under way: the oldest gives way, and so does everything older than an
    instant that was completed, since frames are wanted newest first. Both are counted in `incomplete`."""

    def __init__(self, parts: Collection[str], capacity: int = 8) -> None:
        self._parts = frozenset(parts)
        self._capacity = capacity
        self._waiting: dict[int, dict[str, T]] = {}
        self.incomplete = 0

    def add(self, part: str, stamp: int, value: T) -> dict[str, T] | None:
        """Return all parts of the instant `stamp` (µs) if this was the last that it lacked, else None."""
        gathered = self._waiting.setdefault(stamp, {})
        gathered[part] = value
        if gathered.keys() >= self._parts:
            del self._waiting[stamp]
            self._drop([older for older in self._waiting if older < stamp])
            return gathered
        if len(self._waiting) > self._capacity:
            # In order of arrival: after a jump back in time the new stamps are the lower ones.
            self._drop([next(iter(self._waiting))])
        return None

    def _drop(self, stamps: list[int]) -> None:
        for stamp in stamps:
            del self._waiting[stamp]
        self.incomplete += len(stamps)
