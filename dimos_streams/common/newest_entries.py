"""A table of bounded size that forgets what is oldest."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class NewestEntries(OrderedDict[K, V]):
    """A table of the ``most`` newest entries, the oldest first: one more takes the place of the oldest. An entry that
    is set again is the newest again. Only ``copy`` copies it."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)

    def copy(self) -> NewestEntries[K, V]:
        """Return a table of the same entries and the same size."""
        copied = NewestEntries[K, V](self._most)
        copied.update(self)
        return copied
