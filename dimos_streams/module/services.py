"""Services: what modules of one process offer each other."""

from __future__ import annotations

from typing import Protocol, TypeVar, cast

S = TypeVar("S")


class Services:
    """Objects that modules of one process offer each other, by the type under which they are asked for."""

    def __init__(self) -> None:
        self._offered: dict[type, object] = {}

    def offer(self, kind: type[S], service: S) -> None:
        """Make ``service`` available under ``kind``; a later offer replaces an earlier one."""
        self._offered[kind] = service

    def withdraw(self, kind: type) -> None:
        """Take an offer back; unknown kinds are fine."""
        self._offered.pop(kind, None)

    def get(self, kind: type[S]) -> S | None:
        """The service that is offered under ``kind`` in this process, or None."""
        return cast("S | None", self._offered.get(kind))


class Clocks(Protocol):
    """The differences between the clocks of a run's machines, as far as they were measured; a service of each
    process."""

    def ahead_us(self, of: str, than: str) -> int | None:
        """Return how far the clock of one machine is ahead of another's, in µs, or None while that is not known."""
