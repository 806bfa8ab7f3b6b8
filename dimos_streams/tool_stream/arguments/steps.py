"""The steps that a call's arguments may take: schemas come from outside, and may demand any amount of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MAX_STEPS = 30_000
"""Maximum number of looks at parts of a schema or of the arguments, for one call; they take a tenth of a second."""
CHARACTERS_PER_STEP = 100
"""Number of characters of a text that count as one step."""


class TooManyStepsError(Exception):
    """The error for arguments that take more steps than a call may."""


_left: ContextVar[int] = ContextVar("steps left")


@contextmanager
def limited_steps() -> Iterator[None]:
    """Let what is within spend ``MAX_STEPS``."""
    token = _left.set(MAX_STEPS)
    try:
        yield
    finally:
        _left.reset(token)


def spend(steps: int) -> None:
    """Count steps. Raises ``TooManyStepsError`` if no more of them are left within ``limited_steps``."""
    left = _left.get() - steps
    if left < 0:
        raise TooManyStepsError
    _left.set(left)
