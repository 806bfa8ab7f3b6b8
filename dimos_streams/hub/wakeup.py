"""The wake-up of a task of a hub when there may be something new in the database."""

from __future__ import annotations

import asyncio

from dimos_streams.common.tasks import ends_within

_POLL_S = 0.5
"""Interval, in seconds, at which a task looks for what is new without a notice of it."""


class Wakeup:
    """Wakes one task by a notice, and otherwise at intervals, because notices of other hubs may be missed. Use from
    the loop only."""

    def __init__(self) -> None:
        self._noticed = asyncio.Event()

    def wake(self) -> None:
        """Note that there may be something new."""
        self._noticed.set()

    async def wait(self) -> None:
        """Wait for a notice since the last wait, or until it is time to look without one."""
        await ends_within(_POLL_S, self._noticed.wait())
        self._noticed.clear()
