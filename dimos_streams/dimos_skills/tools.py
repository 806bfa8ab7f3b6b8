"""The tools that a dimos server lists, as skills."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dimos_streams.common.invalid import problem_of
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.printable import printable
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.dimos_skills.config import DimosSkillsConfig, matches
from dimos_streams.errors import SkillError
from dimos_streams.skill import Call, SkillPolicy, SkillSpec, name_fault
from dimos_streams.tool_stream.arguments.schema_parameters import SchemaParameters

MAX_TOOLS = 200
MAX_SKILL = 16_000
"""Maximum size of one tool's name, description and schema, in bytes."""
MAX_ALL = 300_000
"""Maximum size of those of all tools together, in bytes: no more fits into a module's heartbeats."""
_MAX_DESCRIPTION = 8_000
_NAME = re.compile(r"[A-Za-z_][\w-]{0,63}", re.ASCII)
_CALL = "the running call"
"""The key of the running call among the arguments; no argument of a tool can have this name."""


class _Meta(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    uses: tuple[str, ...] = Field((), alias="dimos/uses")
    lifecycle: str = Field("instant", alias="dimos/lifecycle")


class _Listed(BaseModel):
    """A tool as ``tools/list`` has it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    description: str = ""
    schema_: dict[str, Any] = Field(default_factory=dict, alias="inputSchema")
    meta: _Meta = Field(_Meta.model_validate({}), alias="_meta")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the server."""

    name: str
    moves: bool
    """True if it may move the robot, for all that is known."""
    streams: bool
    """True if it goes on after its answer, until dimos says that it has stopped."""
    stop: str
    """The tool that ends it; empty if there is none."""
    ends: bool
    """True if the settings say that it ends another one: it holds nothing, and can be called while that one does."""


RunTool = Callable[[Any, Tool, Call, dict[str, Any]], Awaitable[Any]]
"""Runs a tool for a module: for a call, with its arguments."""


@dataclass(slots=True)
class ToolList:
    """The tools of one answer of the server: those that become skills, and warnings about the others."""

    skills: dict[str, SkillSpec] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    """The tools by the names of their skills."""
    warnings: list[str] = field(default_factory=list)


def listed_tools(result: Mapping[str, Any], config: DimosSkillsConfig, run: RunTool) -> ToolList:
    """Return the list in the result of ``tools/list``. A tool that can't be a skill is left out, with a warning.

    Raises ``SkillError`` for a result that is not a list.
    """
    entries = result.get("tools")
    if not isinstance(entries, list):
        raise SkillError(f"dimos at {config.url} lists no tools: {json_text(result)[:200]}")
    found, size, here = ToolList(), 0, [name for entry in entries if (name := _name(entry))]
    stops = {name: config.stop_of(name, here) for name in here}
    for entry in entries:
        if not matches(config.tools, _name(entry)):
            continue
        try:
            listed = _Listed.model_validate(entry)
            size += _checked_size(listed)
            if len(found.skills) >= MAX_TOOLS or size > MAX_ALL:
                found.warnings.append(
                    f"more than {MAX_TOOLS} tools, or {MAX_ALL} bytes of them: the rest is left out"
                )
                break
            tool, contradiction = _tool(listed, config, stops)
            found.warnings += contradiction
            spec = _spec(listed, tool, config, run)
            if fault := name_fault(spec.info()):
                raise ValueError(fault)
        except ValueError as error:
            name = printable(_name(entry)[:50])
            found.warnings.append(f"tool {name!r} is no skill: {problem_of(error, 'it')}"[:300])
        else:
            found.skills[spec.name], found.tools[spec.name] = spec, tool
    found.warnings += config.unmatched(here)
    return found


def _name(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else ""


def _checked_size(listed: _Listed) -> int:
    """Return the size of a tool, in bytes. Raises ``ValueError`` for a name that no skill can have, and for too long
    a description or schema."""
    if not _NAME.fullmatch(listed.name):
        raise ValueError("its name is not of letters, digits, _ and -, 64 characters at most")
    size = len(json_text(listed.schema_)) + len(cut_to(listed.description, _MAX_DESCRIPTION)) + len(listed.name)
    if size > MAX_SKILL:
        raise ValueError(f"its description and schema have {size} bytes, {MAX_SKILL} are possible")
    return size


def _tool(listed: _Listed, config: DimosSkillsConfig, stops: Mapping[str, str]) -> tuple[Tool, list[str]]:
    """Return the tool, and what contradicts the settings. What dimos says of it makes it no safer than they do."""
    name, uses = listed.name, listed.meta.uses
    ends = name in config.stops.values()  # a guess is good enough to end a call, not to move while held
    still = ends or matches(config.still, name)
    warnings = []
    if still and uses:
        warnings.append(f"{name!r} is said to be still, but dimos says it uses {', '.join(uses)[:100]}: it may move")
    moves, streams = bool(uses) or not still, listed.meta.lifecycle == "background" or matches(config.streams, name)
    if streams and moves and not stops[name]:
        warnings.append(f"nothing can end {name!r} while it goes on: `stops` names no tool for that which dimos has")
    return Tool(name, moves, streams, stops[name], ends), warnings


def _spec(listed: _Listed, tool: Tool, config: DimosSkillsConfig, run: RunTool) -> SkillSpec:
    async def call_tool(module: Any, /, **given: Any) -> Any:
        call = given.pop(_CALL)
        return await run(module, tool, call, given)

    policy = SkillPolicy(
        motion=tool.moves,
        resources=(config.resource,) if tool.moves else (),
        read_only=not tool.moves and matches(config.read_only, tool.name),
        on_duplicate="reject" if tool.streams else "allow",
        tags=("dimos", "motion" if tool.moves else "stop" if tool.ends else "safe"),
        time_limit_s=config.longest_s,
    )
    description = cut_to(listed.description, _MAX_DESCRIPTION)
    name = f"{config.prefix}{tool.name}"
    return SkillSpec(name, call_tool, policy, SchemaParameters(listed.schema_), description, _CALL)
