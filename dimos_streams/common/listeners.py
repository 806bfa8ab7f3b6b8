"""Functions that are called when something happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Functions in the order in which they were added. Whoever goes through them calls those that are there at the
    beginning; they may come and go meanwhile."""

    def __init__(self) -> None:
        self._listeners: list[Callable[P, None]] = []

    def add(self, listener: Callable[P, None]) -> Callable[[], None]:
        """Add a function. The function that is returned removes it, and may be called twice."""
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    def notify(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call them all. Raises what one raises; those behind it are not called then."""
        for listener in self:
            listener(*args, **kwargs)

    def __iter__(self) -> Iterator[Callable[P, None]]:
        return iter(tuple(self._listeners))
