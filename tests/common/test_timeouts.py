"""What asyncio promises of timeouts, and Python 3.11.0 to 3.11.2 do not keep by themselves."""

from __future__ import annotations

import asyncio

import pytest

import dimos_streams  # noqa: F401  # which mends what the first Pythons 3.11 got wrong
from dimos_streams.clock import run_virtual


def test_a_timeout_that_expires_while_a_cancelled_task_cleans_up_is_one() -> None:
    ended: list[str] = []

    async def skill() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await asyncio.sleep(60)
            ended.append("in order")

    async def scenario() -> None:
        task = asyncio.create_task(skill())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    run_virtual(scenario())
    assert ended == ["in order"]


def test_a_task_that_is_cancelled_within_a_timeout_is_cancelled() -> None:
    async def scenario() -> None:
        task = asyncio.create_task(patient())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    async def patient() -> None:
        async with asyncio.timeout(5):
            await asyncio.sleep(60)

    run_virtual(scenario())
