"""Reads the events of the agent's calls from the tool streams into the agent: each event once, in order."""

from __future__ import annotations

from dimos_streams.agent.calls.call_events import CallEvents
from dimos_streams.client.iterators import closing
from dimos_streams.tool_stream.gateway import SkillGateway


class EventReader:
    """Reads one caller's events from an offset on."""

    def __init__(self, gateway: SkillGateway, caller: str, events: CallEvents, *, offset: int) -> None:
        self.offset = offset
        """The offset of the newest event that was dealt with. Before ``run`` it may be set to begin elsewhere."""
        self._gateway = gateway
        self._caller = caller
        self._events = events

    async def run(self) -> None:
        """Read until cancelled; return if the gateway ends the stream. Waits while the agent's queue is full."""
        async with closing(self._gateway.events(after=self.offset, caller=self._caller)) as events:
            async for entry in events:
                # A gap may lead back to an earlier offset: the journal was lost and begins anew.
                if entry.offset <= self.offset and entry.event.type != "gap":
                    continue
                await self._events.observe(entry.event, entry.offset)
                self.offset = entry.offset
