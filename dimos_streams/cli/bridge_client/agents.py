"""Agents as commands address them: those of a run, or of all robots of a hub.

At a hub each robot's name stands before the names of its agents, as a namespace does within a run: ``robot1/agent``
is called ``robot1``, and its skill ``robot1_say``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from dimos_streams.errors import RobotNeededError, SkillError, UnknownAgentError
from dimos_streams.operator.agents import SEVERAL, AgentView, addressee, agents_offered, choose_agent
from dimos_streams.operator.known_names import SAY

if TYPE_CHECKING:
    from dimos_streams.tool_stream.gateway import SkillGateway

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OfferedAgents:
    """The agents that are offered at an address."""

    agents: list[AgentView]
    robots: frozenset[str]
    """The robots of a hub that have skills; empty at a bridge."""

    def choose(self, wanted: str = "") -> AgentView:
        """Return the agent of that name, or the only one. Raises ``UnknownAgentError``."""
        if self.robots and not self.agents:
            raise UnknownAgentError(f"no agent is here: no robot has one ({', '.join(sorted(self.robots))})")
        return choose_agent(self.agents, wanted)


async def offered_agents(gateway: SkillGateway) -> OfferedAgents:
    """Return the agents that are offered."""
    skills = await gateway.skills()
    named = [skill.model_copy(update={"module": f"{skill.robot}/{skill.module}"}) for skill in skills if skill.robot]
    return OfferedAgents(agents_offered(named or skills), frozenset(skill.robot for skill in skills if skill.robot))


async def begin_at_agent(
    gateway: SkillGateway, agent: str, skill: str, begin: Callable[[str, str | None], Awaitable[T]]
) -> T:
    """Begin a skill of an agent, of the only one if ``agent`` is empty. ``begin`` takes the skill's name and the
    agent whose it is; None with a name that is public.

    Nobody is asked beforehand who is there: it may be a stop. Only a hub wants to be told which of several robots is
    meant, and a robot does not know its name there. Raises ``UnknownAgentError``.
    """
    try:
        return await begin(skill, agent)
    except (UnknownAgentError, RobotNeededError) as error:
        if not (agent or isinstance(error, RobotNeededError)):
            raise
        offered = await offered_agents(gateway)
        if not offered.robots:
            raise
    return await begin(offered.choose(agent).skill(skill), None)


async def find_addressee(gateway: SkillGateway, text: str) -> tuple[str, str]:
    """Return the agent that a text is said to, by the name and the colon with which it begins, and what it is told;
    the agent is empty if the text names none, and it goes to the only one.

    An agent of a run is told all of it: its model knows the run's names. A robot does not know its name at a hub.
    Where nobody says who is there the text goes as it stands to the only one: it may be a stop.
    """
    name = addressee(text)
    if not name:
        return "", text
    try:
        offered = await offered_agents(gateway)
    except SkillError:
        return "", text
    if len(offered.agents) < 2 and name not in offered.robots:
        return "", text
    return name, text.partition(":")[2].strip() if offered.robots else text


async def find_say(gateway: SkillGateway, wanted: str = "") -> str:
    """Return the skill by which an operator talks to an agent, the only one if none is named.

    Raises ``UnknownAgentError`` if there is none, or if several may be meant.
    """
    return (await offered_agents(gateway)).choose(wanted).skill(SAY)


@contextlib.contextmanager
def agents_named_by(how: str) -> Iterator[None]:
    """Have the error that several agents may be meant say how one is named here: by which option, for instance."""
    try:
        yield
    except UnknownAgentError as error:
        if not str(error).startswith(SEVERAL):
            raise
        raise UnknownAgentError(f"{error} ({how})") from error
