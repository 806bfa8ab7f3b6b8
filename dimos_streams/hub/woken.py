"""The sign by which a hub's task learns that there may be something new in the database."""

from __future__ import annotations

import asyncio

from dimos_streams.common.tasks import ends_within

_POLL_S = 0.5
"""Interval, in seconds, of looking for what is new where no notice of it came."""


class Woken:
    """A sign for one task, which looks now and then without it, too: notices of other hubs may be missed. Use from
    the loop only."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Note that there may be something new."""
        self._woken.set()

    async def wait(self) -> None:
        """Wait for a sign that was given since the last wait, or until it is time to look without one."""
        await ends_within(_POLL_S, self._woken.wait())
        self._woken.clear()
