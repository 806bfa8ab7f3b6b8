"""Modules that tests put in the place of stock ones."""

from __future__ import annotations

import asyncio

from dimos_streams.skills.follow_person import FollowPerson


class Breaks(FollowPerson):
    """Fails while it runs."""

    async def run(self) -> None:
        await asyncio.sleep(1)
        raise RuntimeError("broken on purpose")
