"""Modules that tests put in the place of stock ones."""

from __future__ import annotations

import asyncio

from dimos_streams.skill import Call
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.look_out_for import LookOut, LookOutReport


class Breaks(FollowPerson):
    """Fails while it runs."""

    async def run(self) -> None:
        await asyncio.sleep(1)
        raise RuntimeError("broken on purpose")


class PickyLookOut(LookOut):
    """The stock one after somebody has changed how sure it must be."""

    async def _watch(self, call: Call, wanted: list[str], timeout_s: float, confidence: float) -> LookOutReport:
        return await super()._watch(call, wanted, timeout_s, 0.99)
