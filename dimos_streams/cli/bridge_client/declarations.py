"""The modules that declare themselves agents. The names of skills don't tell: any module may have a skill ``say``."""

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
    """The answers of a bridge to the question which of its modules are agents. It is asked once for each module, and
    only if a skill of that module is named as an agent's are."""

    def __init__(self, gateway: SkillGateway) -> None:
        self._gateway = gateway
        self._agents: dict[tuple[str, str], bool] = {}
        """True for each module that is an agent, by robot and module."""

    async def marked(self, event: ToolEvent) -> ToolEvent:
        """Return an event, marked as no agent's if its module is none."""
        return event if await self._fits(event) else replace(event, of_agent=False)

    async def is_talk(self, view: CallView) -> bool:
        """Return whether a call is an operator's talk with an agent."""
        return is_conversation(view) and await self._fits(view)

    async def without_looks(self, views: Iterable[CallView]) -> list[CallView]:
        """Return the calls without those by which programs only look at agents: people are not shown these."""
        return [view for view in views if not (is_look(view) and await self._fits(view))]

    async def _fits(self, named: ToolEvent | CallView) -> bool:
        """Return whether an event or call that is named as an agent's is one. For a module that the bridge does not
        offer any more only the name counts."""
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
