"""Agents as operators' tools see them, and the calls that commands become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dimos_streams.common.names import MAX_NAME, prefix_of
from dimos_streams.errors import UnknownAgentError, suggest
from dimos_streams.operator.known_names import APPROVALS, MONITOR, REPORT, SAY
from dimos_streams.operator.messages.commands import AgentCommand
from dimos_streams.skill.names import public_prefix
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.review import REVIEW

if TYPE_CHECKING:
    from dimos_streams.tool_stream.gateway import CallView, OfferedSkill

_LOOKS = (APPROVALS, "plans", "typing", REVIEW)
"""The skills of agents by which consoles look at them, and the bridge asks them: the result of a review is shown by
the call that it is about."""
_NAMES = (SAY, REPORT, *_LOOKS)
SEVERAL = "several agents may be meant"
"""The beginning of the error of ``choose_agent`` that asks for a name; a console says how it takes one."""
_ENDED_BY_OPERATORS = ("aborted", "call_cancelled", "cancelled")
"""The reasons of missions that an operator has ended. A tuple: a log of another program may have anything there."""


class Offered(Protocol):
    """A skill that a module offers: ``OfferedSkill``, or a ``SkillLine`` of the monitor."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def available(self) -> bool: ...
    @property
    def agent(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class AgentView:
    """An agent that is offered."""

    name: str
    """The name of its module."""
    prefix: str
    """The prefix of its skills' names: ``""``, or ``"robot1_"`` for a namespaced agent."""
    reports: bool
    """True if it has a skill ``report``."""
    available: bool

    def skill(self, name: str) -> str:
        """The public name of one of its operator skills."""
        return f"{self.prefix}{name}"

    def is_called(self, wanted: str) -> bool:
        """Return whether an operator who says ``wanted`` may mean it: its module, its namespace or its ``say``."""
        return is_called(self.name, wanted) or wanted == self.skill(SAY)


def is_called(agent: str, wanted: str) -> bool:
    """Return whether ``wanted`` is an agent's module or namespace."""
    return agent == wanted or agent.startswith(f"{wanted}/")


def may_mean_one(wanted: str, other: str) -> bool:
    """Return whether operators who say these may mean the same agent. The name of a ``say`` may be that of any: only
    a list of agents tells whose it is."""
    is_say = any(each == SAY or each.endswith(f"_{SAY}") for each in (wanted, other))
    return not wanted or not other or is_say or is_called(wanted, other) or is_called(other, wanted)


def agents_offered(skills: Iterable[OfferedSkill]) -> list[AgentView]:
    """The agents whose skills these are, by name, also those whose skills are called so by another module, too."""
    return agents_among(offered for skill in skills for offered in (skill, *skill.shadowed))


def agents_among(skills: Iterable[Offered]) -> list[AgentView]:
    """The agents whose skills these are, by name. Each skill says whether its module is one."""
    offered: dict[str, dict[str, bool]] = {}
    for skill in skills:
        if skill.agent:
            offered.setdefault(skill.module, {})[skill.name] = skill.available
    return [
        AgentView(module, public_name(module, ""), public_name(module, REPORT) in names, any(names.values()))
        for module, names in sorted(offered.items())
    ]


def public_name(module: str, skill: str) -> str:
    """The public name of a module's skill: its name behind the module's namespace, ``robot1_pause``."""
    return f"{public_prefix(prefix_of(module))}{skill}"


def is_named_as_agents(event: ToolEvent | CallView) -> bool:
    """Return whether the skill of an event, or of a call, is called as those of agents are by which operators talk to
    them and programs look at them. Whether its module is an agent is another question: a robot may ``say``, too."""
    return any(event.skill == public_name(event.module, name) for name in _NAMES)


def is_conversation(event: ToolEvent | CallView) -> bool:
    """Return whether an event, or a call, is part of an operator's talk with an agent, a call of its ``say``."""
    return event.skill == public_name(event.module, SAY) and _is_of_agent(event)


def _is_of_agent(event: ToolEvent | CallView) -> bool:
    return not isinstance(event, ToolEvent) or event.of_agent


def note_in(event: ToolEvent) -> str:
    """Return the note of an agent that an event of a talk with it has; empty if it has none."""
    entry = event.data.get("entry") if is_conversation(event) else None
    if not isinstance(entry, Mapping) or entry.get("role") != "note":
        return ""
    return str(entry.get("text", ""))


def reason_of(close: ToolEvent) -> str | None:
    """Return why a mission ended, as the agent says it; None if it does not."""
    result = close.data.get("result")
    return result.get("reason") if isinstance(result, Mapping) else None


def outcome_for_people(event: ToolEvent) -> str:
    """Return a close's outcome as people see it. A mission that an operator has ended has not completed, which
    programs have to know, but nothing went wrong: it was cancelled. The dashboard's ``outcomes.js`` says the same."""
    was_ended = event.outcome == "failed" and is_conversation(event) and reason_of(event) in _ENDED_BY_OPERATORS
    return "cancelled" if was_ended else str(event.outcome)


def is_look(event: ToolEvent | CallView) -> bool:
    """Return whether an event is of a call by which a program looks at an agent, or asks it, which changes nothing;
    or whether a call is such a one.

    It is nobody's call to whoever reads of a run: not shown, not counted. What operators order and decide is.
    """
    if not _is_of_agent(event):
        return False
    if event.caller == MONITOR:
        return event.skill == public_name(event.module, REPORT)
    return event.skill in (public_name(event.module, look) for look in _LOOKS)


def choose_agent(agents: Iterable[AgentView], wanted: str = "") -> AgentView:
    """The agent of that name, or the only one. Raises ``UnknownAgentError``."""
    agents = list(agents)
    found = [agent for agent in agents if agent.is_called(wanted)] if wanted else agents
    exact = [agent for agent in found if agent.name == wanted] or found
    if len(exact) == 1:
        return exact[0]
    if not exact:
        raise unknown_agent(agents, wanted)
    raise UnknownAgentError(f"{SEVERAL}; name one of them: {_names(agents)}")


def unknown_agent(agents: Sequence[AgentView], wanted: str) -> UnknownAgentError:
    """The error that says that no agent is called so, and how those are called that there are."""
    if not agents:
        return UnknownAgentError("no agent is here: no module of the run is one")
    near = suggest(wanted, (agent.name for agent in agents))
    return UnknownAgentError(f"no agent is called {wanted!r}{near} (there are: {_names(agents)})")


def _names(agents: Sequence[AgentView]) -> str:
    return ", ".join(agent.name for agent in agents)


def addressee(text: str) -> str:
    """The word before a colon with which a text begins, which may be the name of the agent to whom it is said,
    ``"robot2: move 0.3"``; or empty."""
    name, colon, _ = text.partition(":")
    return name.strip() if colon and len(name.split()) == 1 and len(name) <= MAX_NAME else ""


def call_for(command: AgentCommand) -> tuple[str, dict[str, Any]]:
    """The operator skill that carries a command out, without its prefix, and the arguments."""
    arguments = command.model_dump(mode="json", exclude={"command", "id", "agent"}, exclude_none=True)
    return command.command, arguments
