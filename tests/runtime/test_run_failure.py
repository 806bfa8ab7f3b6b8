"""The error that makes a run fail is the first: what fails after it may be its consequence."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.errors import ModuleFailedError
from dimos_streams.runtime.live.run_failure import RunFailure


@pytest.mark.virtual_time
async def test_the_first_error_counts() -> None:
    failure = RunFailure()
    failure.check()
    waiting = asyncio.create_task(failure.wait())
    await asyncio.sleep(1.0)
    assert not waiting.done()
    for text in ("the camera has failed", "nothing is seen"):
        failure.set(ModuleFailedError(text))
    with pytest.raises(ModuleFailedError, match="the camera has failed"):
        await waiting
    with pytest.raises(ModuleFailedError, match="the camera has failed"):
        failure.check()
