"""The skills that a model is offered, as the bridge lists them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from dimos_streams import clock
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.names import is_near
from dimos_streams.errors import SkillError, UnknownSkillError
from dimos_streams.tool_stream.gateway import OfferedSkill, SkillGateway

_logger = logging.getLogger(__name__)


class SkillCatalog:
    """The newest list of the skills that there are; the bridge is asked again when it is older than ``fresh_s``.

    While the bridge can't answer, the last list counts.
    """

    def __init__(self, gateway: SkillGateway, *, module: str, fresh_s: float = 0.5) -> None:
        """``module`` is the agent's own, whose skills are for operators and never offered. If it is in a namespace,
        only skills of modules in that namespace, or in none, are offered."""
        self._gateway = gateway
        self._module = module
        self._fresh_s = fresh_s
        self._asked_at: float | None = None
        self._all: dict[str, OfferedSkill] = {}
        self._offered: dict[str, OfferedSkill] = {}
        self.refreshed: Listeners[[]] = Listeners()
        """Called when there is a newer list."""

    @property
    def all(self) -> Mapping[str, OfferedSkill]:
        """Every skill of the last list, by name."""
        return self._all

    @property
    def offered(self) -> Mapping[str, OfferedSkill]:
        """The skills of that list that models may call, available or not, by name."""
        return self._offered

    def all_named(self, name: str) -> Sequence[OfferedSkill]:
        """The skills of that name in the last list: several modules may offer it, and the bridge calls one of
        them, the first as of that list."""
        known = self._all.get(name)
        return () if known is None else (known, *known.shadowed)

    async def refresh(self, *, at_once: bool = False) -> None:
        """Ask the bridge for its list, if that is due or ``at_once``."""
        now = clock.monotonic()
        if not at_once and self._asked_at is not None and now - self._asked_at < self._fresh_s:
            return
        try:
            skills = await self._gateway.skills()
        except SkillError as error:
            _logger.warning("the skills can't be listed, the model gets those of the last time: %s", error)
            return
        self._asked_at = now
        self._all = {skill.name: skill for skill in skills}
        self._offered = {skill.name: skill for skill in offered_to(self._module, skills)}
        self.refreshed.notify()

    async def find(self, name: str, known: Iterable[str] | None = None) -> OfferedSkill:
        """Return a skill that models may call, after another look at the bridge's list if it is not in the last one.

        Raises ``UnknownSkillError``, which lists the names that are ``known``, by default those of the list.
        """
        if name not in self._offered:
            await self.refresh(at_once=True)
        if name not in self._offered:
            raise UnknownSkillError(name, self._offered if known is None else known)
        return self._offered[name]

    def concerns(self, skill: str) -> bool:
        """Return whether a skill of the last list is this agent's to stop: it is offered to it, or it moves the same
        robot."""
        known = self._all.get(skill)
        return known is not None and (
            skill in self._offered or (known.motion and is_near(self._module, known.module))
        )

    def may_move(self, skill: str) -> bool:
        """Return whether a call of a skill may move the robot, for all that is known: True for an unknown skill."""
        known = self._all.get(skill)
        return known is None or known.may_move


def offered_to(agent: str, skills: Iterable[OfferedSkill]) -> list[OfferedSkill]:
    """The skills that an agent's model may call, as far as that depends on whose they are."""
    return [
        skill
        for skill in skills
        if skill.audience == "everyone" and (not agent or skill.module != agent) and is_near(agent, skill.module)
    ]
