"""Tools of the agent itself, offered to the model beside the skills."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.models.protocol import ToolSchema
from dimos_streams.agent.tools.call_result import CallResult
from dimos_streams.common.process.internal_error import internal_error
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.schemas.plain import tool_parameters
from dimos_streams.errors import SkillError
from dimos_streams.skill.argument_model import checked_arguments

_logger = logging.getLogger(__name__)

Run: TypeAlias = Callable[[Any, tuple[Mission, ...]], Awaitable[str | CallResult]]


class Arguments(FrozenModel):
    """Base of tools' arguments: the fields are the schema, their descriptions the model's help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTool:
    """One tool. ``run`` gets the checked arguments and the missions that it is for; a ``SkillError`` is an error."""

    name: str
    description: str
    arguments: type[Arguments]
    run: Run
    offered: Callable[[], bool] = lambda: True
    """Whether the model sees it now; called anyhow it works all the same."""
    concurrent: bool = False
    polling: bool = False

    def schema(self) -> ToolSchema:
        """Return the tool's schema, as a model is offered it."""
        return ToolSchema(self.name, self.description, tool_parameters(self.arguments))


class LocalTools:
    """The tools of the agent itself that one loop offers beside the skills. They pass no gate but control's."""

    def __init__(self, tools: Iterable[LocalTool]) -> None:
        self._tools: dict[str, LocalTool] = {}
        self._schemas: dict[str, ToolSchema] = {}
        self.add(tools)

    def add(self, tools: Iterable[LocalTool]) -> None:
        """Add tools behind those that are there. Raises ``ValueError`` for a name that one of them has."""
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are called {tool.name!r}")
            self._tools[tool.name] = tool
            self._schemas[tool.name] = tool.schema()

    def __contains__(self, name: object) -> bool:
        """Return whether there is a tool of that name, offered now or not."""
        return name in self._tools

    def schemas(self) -> tuple[ToolSchema, ...]:
        """The schemas of the tools that are offered now."""
        return tuple(self._schemas[name] for name, tool in self._tools.items() if tool.offered())

    def concurrent(self, name: str) -> bool:
        """Return whether a tool may run beside others."""
        return self._tools[name].concurrent

    def polling(self) -> frozenset[str]:
        """The names of the tools that may be called again and again."""
        return frozenset(name for name, tool in self._tools.items() if tool.polling)

    async def run(
        self, name: str, arguments: Mapping[str, Any], missions: tuple[Mission, ...] = (), *, tool_call_id: str = ""
    ) -> CallResult:
        """Check the arguments and run a tool, for missions. Raises nothing but ``CancelledError``."""
        tool = self._tools[name]
        try:
            answer = await tool.run(checked_arguments(tool.arguments, tool.name, arguments), missions)
        except SkillError as error:
            return CallResult(str(error), is_error=True)
        except Exception as error:
            error_id = f"{name}-{tool_call_id}"
            _logger.exception("tool %s failed, %s", name, error_id)
            return CallResult(internal_error(error_id, error), is_error=True)
        return answer if isinstance(answer, CallResult) else CallResult(answer)


class NoArguments(Arguments):
    """The arguments of a tool that takes none."""
