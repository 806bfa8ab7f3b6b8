"""All that the model of a loop may call: skills and the agent's own tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.models.protocol import ToolSchema
from dimos_streams.agent.policies.gates.base import Reviewer
from dimos_streams.agent.tools.local_tools import LocalTools
from dimos_streams.tool_stream.arguments.defaults import with_defaults


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The skills of the agent, as far as a loop's reviewer lets them be offered, and the loop's own tools."""

    catalog: SkillCatalog
    local: LocalTools
    reviewer: Reviewer
    """Judges the calls of skills that the model asks for, and says which skills it is offered."""

    def offered(self) -> tuple[ToolSchema, ...]:
        """Return the schemas of all that the model is offered now: skills that are available, then tools. A skill
        that is called like a tool is left out: a call of the name is the tool's, and there are servers of models that
        refuse all that is asked of them with two tools of one name."""
        skills = (skill for skill in self.catalog.offered.values() if skill.name not in self.local)
        schemas = (self.reviewer.tool(skill) for skill in skills if skill.available)
        return (*(schema for schema in schemas if schema is not None), *self.local.schemas())

    def concurrent(self, name: str) -> bool:
        """Return whether a call of that skill or tool may run beside others."""
        if name in self.local:
            return self.local.concurrent(name)
        skill = self.catalog.offered.get(name)
        return skill is not None and skill.concurrent

    def polling(self) -> frozenset[str]:
        """The names of the skills and tools that may be called again and again."""
        return self.local.polling() | {name for name, skill in self.catalog.offered.items() if skill.polling}

    def meant(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, Mapping[str, Any]]]:
        """Return calls with the defaults of what their arguments leave out: a model that spells a default out repeats
        itself all the same."""
        offered = self.catalog.offered
        return [
            (name, with_defaults(offered[name].parameters, arguments) if name in offered else arguments)
            for name, arguments in calls
        ]
