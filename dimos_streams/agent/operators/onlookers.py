"""Those who look at an agent again whenever it may look different."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial


class Onlookers:
    """Sets the events of all who watch, whenever something that operators see may have changed."""

    def __init__(self) -> None:
        self._events: dict[asyncio.Event, None] = {}

    def add(self, changed: asyncio.Event) -> Callable[[], None]:
        """Set an event at each change from now on. Return a function that ends that."""
        self._events[changed] = None
        return partial(self._events.pop, changed, None)

    def notify(self) -> None:
        """Tell all that something may have changed."""
        for changed in self._events:
            changed.set()
