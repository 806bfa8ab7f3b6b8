"""A mission: what an operator's words set going, until nothing of it is left to do."""

from __future__ import annotations

from collections.abc import Callable


class Mission:
    """Counts the work that an operator's words caused: waiting messages, turns, calls that are open.

    It is over when the count comes back to zero. ``text`` and ``reason`` are those of its newest turn.
    """

    def __init__(self, id: str, on_over: Callable[[], None]) -> None:
        self.id = id
        self.text = ""
        self.reason = ""
        self.cancelled = False
        """The operator has withdrawn it: no turn of it alone goes on."""
        self._on_over = on_over
        self._held = 0

    @property
    def over(self) -> bool:
        """Whether nothing of it is left."""
        return self._held == 0

    def hold(self) -> None:
        """One more piece of work."""
        self._held += 1

    def release(self) -> None:
        """A piece of work is done."""
        self._held -= 1
        if self._held == 0:
            self._on_over()
