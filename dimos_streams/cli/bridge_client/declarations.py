"""The modules that are agents, as they declare it: a skill of another may be called as an agent's are, ``say``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from dimos_streams.errors import SkillError
from dimos_streams.operator.agents import is_conversation, is_look, is_named_as_agents

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent
    from dimos_streams.tool_stream.gateway import CallView, SkillGateway


class Declarations:
    """The declarations of modules at a bridge. It is asked only where the name of a skill may be an agent's, once for
    each module."""

    def __init__(self, gateway: SkillGateway) -> None:
        self._gateway = gateway
        self._agents: dict[tuple[str, str], bool] = {}
        """Whether it is an agent, by robot and module."""

    async def marked(self, event: ToolEvent) -> ToolEvent:
        """Return an event as all that reads it takes it: as that of an agent or not."""
        return event if await self._fits(event) else replace(event, of_agent=False)

    async def is_talk(self, view: CallView) -> bool:
        """Return whether a call is an operator's talk with an agent."""
        return is_conversation(view) and await self._fits(view)

    async def without_looks(self, views: Iterable[CallView]) -> list[CallView]:
        """Return the calls but those by which programs look at agents, which are nobody's calls to who reads of a
        run."""
        return [view for view in views if not (is_look(view) and await self._fits(view))]

    async def _fits(self, named: ToolEvent | CallView) -> bool:
        """Return whether what an event or a call is named as is what it is. Of a module that nobody offers any more
        only the name is known."""
        if not is_named_as_agents(named):
            return True
        whose = (named.robot or "", named.module)
        if whose not in self._agents:
            try:
                skills = await self._gateway.skills()
            except SkillError:  # whoever waits for the event hears of that elsewhere
                return True
            self._agents |= {(skill.robot or "", skill.module): skill.agent for skill in skills}
        return self._agents.setdefault(whose, True)
