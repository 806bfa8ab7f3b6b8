"""Waiting for one of two things."""

from __future__ import annotations

import asyncio
from typing import Any


async def first_of(task: asyncio.Future[Any], event: asyncio.Event) -> None:
    """Wait until a task is done or an event is set."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
