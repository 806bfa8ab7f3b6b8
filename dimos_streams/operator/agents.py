"""Agents as operators' tools see them: modules with a skill ``say``, and the calls that commands become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from dimos_streams.errors import UserError, suggest
from dimos_streams.operator.messages import AgentCommand
from dimos_streams.operator.reporting import REPORT, SAY


class UnknownAgentError(UserError):
    """No agent, or more than one, is called so."""


class Offered(Protocol):
    """A skill that a module offers: ``OfferedSkill``, or a ``SkillLine`` of the monitor."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def audience(self) -> str: ...
    @property
    def available(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class AgentView:
    """An agent that is offered."""

    name: str
    """Of its module."""
    prefix: str
    """Before the names of its skills: ``""``, or ``"robot1_"`` for a namespaced agent."""
    reports: bool
    """Whether it has a skill ``report``."""
    available: bool

    def skill(self, name: str) -> str:
        """The public name of one of its operator skills."""
        return f"{self.prefix}{name}"

    def is_called(self, wanted: str) -> bool:
        """Whether an operator who says ``wanted`` may mean it: its module, its namespace or its ``say``."""
        return is_called(self.name, wanted) or wanted == self.skill(SAY)


def is_called(agent: str, wanted: str) -> bool:
    """Whether ``wanted`` is an agent's module or namespace."""
    return agent == wanted or agent.startswith(f"{wanted}/")


def agents_among(skills: Iterable[Offered]) -> list[AgentView]:
    """The agents whose skills these are, by name."""
    skills = list(skills)
    offered = {(skill.module, skill.name) for skill in skills}
    found = {
        (skill.module, skill.name.removesuffix(SAY)): skill.available
        for skill in skills
        if skill.audience == "operator" and (skill.name == SAY or skill.name.endswith(f"_{SAY}"))
    }
    return [
        AgentView(module, prefix, (module, f"{prefix}{REPORT}") in offered, available)
        for (module, prefix), available in sorted(found.items())
    ]


def choose_agent(agents: Iterable[AgentView], wanted: str = "") -> AgentView:
    """The agent of that name, or the only one. Raises ``UnknownAgentError``."""
    agents = list(agents)
    found = [agent for agent in agents if agent.is_called(wanted)] if wanted else agents
    exact = [agent for agent in found if agent.name == wanted] or found
    if len(exact) == 1:
        return exact[0]
    names = ", ".join(agent.name for agent in agents)
    if not agents:
        raise UnknownAgentError("no agent is here: no module offers an operator's skill `say`")
    if not exact:
        near = suggest(wanted, (agent.name for agent in agents))
        raise UnknownAgentError(f"no agent is called {wanted!r}{near} (there are: {names})")
    raise UnknownAgentError(f"several agents may be meant; name one of them: {names}")


def call_for(command: AgentCommand) -> tuple[str, dict[str, Any]]:
    """The operator skill that carries a command out, without its prefix, and the arguments."""
    arguments = command.model_dump(mode="json", exclude={"command", "id", "agent"}, exclude_none=True)
    return command.command, arguments
