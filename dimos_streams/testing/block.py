"""The block of ``async with`` in which a test uses what it runs."""

from __future__ import annotations

from dimos_streams.errors import UserError


class Block:
    """Knows whether the block of a run has begun or is over, so that what is used outside of it can say so."""

    def __init__(self, runs: str, usage: str) -> None:
        """``runs`` is what runs in the block, ``usage`` is the line that begins it."""
        self._runs = runs
        self._usage = usage
        self._begun = self._over = False

    def begin(self) -> None:
        """Note that the block begins."""
        self._begun, self._over = True, False

    def end(self) -> None:
        """Note that the block is over."""
        self._over = True

    def check_begun(self, what: str) -> None:
        """Raise ``UserError`` if the block has not begun; what came in it can be looked at afterwards."""
        if not self._begun:
            raise self.misused(what, "has not begun")

    def check(self, what: str) -> None:
        """Raise ``UserError`` outside of the block."""
        self.check_begun(what)
        if self._over:
            raise self.misused(what, "is over")

    def misused(self, what: str, why: str) -> UserError:
        """The error for a test that has used ``what`` in another way than in the block."""
        return UserError(f"{what}: the block of this {self._runs} {why}; use `{self._usage}` and stay inside of it")
