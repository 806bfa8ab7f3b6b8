"""The time limit of tests, where a loop runs the test.

What pytest-timeout raises counts to loops as an error of whatever they ran just then: they log it and go on, for ever
if that is what the test does.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from types import FrameType

import pytest


class TookTooLong(pytest.fail.Exception, SystemExit):  # type: ignore[misc, name-defined]
    """A test has taken too long. Loops end by it, as by any ``SystemExit``."""


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer() -> Generator[None, object, object]:
    """Have the signal of a timer end loops, too."""
    result = yield
    fail = signal.getsignal(signal.SIGALRM)
    if callable(fail):
        late = fail

        def end(number: int, frame: FrameType | None) -> None:
            try:
                late(number, frame)
            except pytest.fail.Exception as error:
                raise TookTooLong(*error.args) from None

        signal.signal(signal.SIGALRM, end)
    return result
