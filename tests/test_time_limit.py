"""A test that hangs ends by its time limit, whatever loop it hangs in."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dimos_streams.common.process.live_loop import run_live


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("run", [run_live, asyncio.run])
def test_a_loop_ends_with_the_test_that_hangs_in_it(
    run: Callable[[Coroutine[Any, Any, None]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.05)  # in place of this test's own limit
    with pytest.raises(pytest.fail.Exception, match="Timeout"):
        run(_for_ever())
    capsys.readouterr()  # the stacks of all threads
