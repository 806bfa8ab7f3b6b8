"""Functions that are called when something happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

ListenerT = TypeVar("ListenerT", bound=Callable[..., None])


class Listeners(Generic[ListenerT]):
    """Functions in the order in which they were added. Whoever goes through them calls those that are there at the
    beginning; they may come and go meanwhile."""

    def __init__(self) -> None:
        self._listeners: list[ListenerT] = []

    def add(self, listener: ListenerT) -> Callable[[], None]:
        """Add a function. The function that is returned removes it, and may be called twice."""
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    def __iter__(self) -> Iterator[ListenerT]:
        return iter(tuple(self._listeners))
