"""The missions of the texts that a run was asked to say to its agents."""

from __future__ import annotations

import asyncio

from dimos_streams.cli.exit_codes import worst_of
from dimos_streams.cli.running.run_link import RunLink
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.tool_stream.event import ToolEvent


class SaidMissions:
    """Says the texts of a plan, all at once, and notes how the missions end that they lead to."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self.closes: dict[int, ToolEvent] = {}
        """The closes of the missions that are over, by their texts' numbers among those that the plan has said."""

    @property
    def exit_code(self) -> int:
        """The exit code of a run in which the missions have ended as those did that are over."""
        return worst_of(self.closes.values())

    async def run(self, link: RunLink) -> None:
        """Say everything, and wait until all missions are over."""
        await asyncio.gather(*(self._say(link, number) for number in range(len(self._plan.request.said))))

    async def _say(self, link: RunLink, number: int) -> None:
        text = self._plan.request.said[number]
        self.closes[number] = await link.say(text, self._plan.listener(text))
