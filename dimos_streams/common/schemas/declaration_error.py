"""The error of a class that is not declared as it should be."""

from __future__ import annotations

from collections.abc import Iterable


class DeclarationError(TypeError):
    """Several things that a class does not declare as it should: ``faults`` has a text for each."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))
