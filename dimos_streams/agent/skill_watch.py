"""Watches the skills of an agent that runs, and says what may be wrong with those that its config gives it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from dimos_streams import clock
from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.skill_warnings import called_like_tools, too_many, unmatched
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.readable.json_cut import cut_to

GRACE_S = 5.0
"""The time in s for modules to come that offer what a config names."""
_MAX_WARNINGS, _MAX_BYTES = 8, 400
"""Maximum number of texts that are shown, and maximum size of each in bytes of JSON: a module's state has a bound."""
_logger = logging.getLogger(__name__)


class SkillWatch:
    """Looks at each list of skills: reports once each thing that may be wrong, and shows it while it is so."""

    def __init__(self, config: AgentConfig, name: str, parts: LoopParts) -> None:
        """``parts`` are those of the agent's own loop."""
        self._config = config
        self._name = name
        self._model = parts.model
        self._toolbox = parts.toolbox
        self._emit = parts.transcript.emit
        self.changed: Listeners[[]] = Listeners()
        """Called when the warnings have changed."""
        self._since: float | None = None
        self._warned: set[str] = set()
        self.warnings: tuple[str, ...] = ()
        """Texts of what may be wrong now; the last may say how many more there are."""

    async def run(self) -> None:
        """Look when the modules have had time to come, also while nobody says anything to the agent."""
        self.look()
        await asyncio.sleep(GRACE_S)
        await self._toolbox.catalog.refresh(at_once=True)

    def look(self) -> None:
        """Look at the newest list of skills."""
        found = list(self._found())
        for text in found:
            if text not in self._warned and len(self._warned) < 2 * _MAX_WARNINGS:
                self._warned.add(text)
                _logger.warning("%s: %s", self._name, text)
                self._emit(EventKind.NOTE, (), text=text)
        left = len(found) - _MAX_WARNINGS
        shown = (
            *(cut_to(text, _MAX_BYTES) for text in found[:_MAX_WARNINGS]),
            *([f"and {left} more"] if left > 0 else []),
        )
        if shown != self.warnings:
            self.warnings = shown
            self.changed.notify()

    def _found(self) -> Iterator[str]:
        now = clock.monotonic()
        self._since = now if self._since is None else self._since
        catalog, own = self._toolbox.catalog, len(self._toolbox.local.schemas())
        skills = len(self._toolbox.offered()) - own
        if text := too_many(self._model.limits.tools, skills, own):
            yield text
        gets = [skill for skill in catalog.offered.values() if self._toolbox.reviewer.tool(skill) is not None]
        if text := called_like_tools(gets, self._toolbox.local):
            yield text
        if now - self._since >= GRACE_S:
            for fault in unmatched(self._config, self._name, catalog.offered.values()):
                yield fault.text
