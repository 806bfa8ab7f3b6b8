"""From the tool streams into the agent: each event of its calls, once, in order."""

from __future__ import annotations

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.client.iterators import closing
from dimos_streams.tool_stream.gateway import SkillGateway


class Inbox:
    """Reads one caller's events from a place on. ``place`` is the newest that was dealt with."""

    def __init__(self, gateway: SkillGateway, caller: str, calls: CallManager, *, place: int) -> None:
        self.place = place
        self._gateway = gateway
        self._caller = caller
        self._calls = calls

    async def run(self) -> None:
        """Read until cancelled; returns if the gateway ends the stream. Waits while the agent's queue is full."""
        async with closing(self._gateway.events(after=self.place, caller=self._caller)) as events:
            async for placed in events:
                # A gap may lead back to an earlier place: the journal was lost and begins anew.
                if placed.place <= self.place and placed.event.type != "gap":
                    continue
                await self._calls.observe(placed.event, placed.place)
                self.place = placed.place
