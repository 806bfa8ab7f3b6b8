"""Faults of the skills that an agent's config gives it: entries that mean none, too many tools, and skills that are
called like the agent's own tools."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.policies.gates.settings import ApprovalRule
from dimos_streams.agent.policies.skill_selection import ALL, SkillSelection, is_meant
from dimos_streams.errors import suggest
from dimos_streams.module import ConfigFault
from dimos_streams.skill import SkillInfo, public_names
from dimos_streams.tool_stream.arguments.defaults import with_defaults

MAX_OWN_TOOLS = 9
"""Maximum number of tools that a model is offered besides skills: those of ``tools/own_tools.py``, and one to
delegate."""


def unmatched(config: AgentConfig, name: str, skills: Iterable[SkillInfo]) -> Iterator[ConfigFault]:
    """Yield entries of an agent's lists, and of its sub-agents', that mean none of the skills that it could get, and
    rules and other settings that name no such skill: they keep nothing from anybody."""
    known = list(skills)
    subs = [(("agents", sub, "skills"), described.skills) for sub, described in config.agents.items()]
    for path, entries in [(("skills",), config.skills), *subs]:
        for place, near in SkillSelection(entries, name).unmatched(known).items():
            text = f"{entries[place]!r} in {'.'.join(path)} means no skill that the agent could get{near}"
            yield ConfigFault((*path, str(place)), text)
    names = [skill.name for skill in known]
    for place, rule in enumerate(config.approval.rules):
        path = ("approval", "rules", str(place))
        meant = [skill for skill in known if rule.skill == ALL or is_meant(rule.skill, name, skill.name)]
        if not meant and rule.skill != ALL:
            text = f"{rule.skill!r} in approval.rules means no skill that the agent could get"
            yield ConfigFault((*path, "skill"), f"{text}{suggest(rule.skill, names)}")
        elif meant:
            yield from _without_argument(rule, meant, path)
    exact = [("disabled_skills", str(place), entry) for place, entry in enumerate(config.disabled_skills)]
    for setting, key, entry in [*exact, *(("duplicates", entry, entry) for entry in config.duplicates)]:
        if set(public_names(entry, name)).isdisjoint(names):
            text = f"{entry!r} in {setting} means no skill that the agent could get"
            yield ConfigFault((setting, key), f"{text}{suggest(entry, names)}")


def _without_argument(rule: ApprovalRule, meant: Sequence[SkillInfo], path: tuple[str, ...]) -> Iterator[ConfigFault]:
    """Yield the arguments of a rule that none of the skills that it means has: it never counts."""
    known = {argument for skill in meant for argument in skill.parameters.get("properties", {})}
    if any(skill.parameters.get("additionalProperties") for skill in meant):
        return
    for argument in rule.arguments:
        if argument.partition(".")[0] not in known:
            whose = "any skill that the agent could get" if rule.skill == ALL else repr(rule.skill)
            text = f"{argument!r} in approval.rules is no argument of {whose}, so the rule never counts"
            yield ConfigFault((*path, "arguments", argument), f"{text}{suggest(argument, known)}")
    for argument, pattern in rule.arguments.items():
        lacks = [_lacking(skill, argument, pattern) for skill in meant] if isinstance(pattern, Mapping) else []
        if pattern and lacks and all(lacks):
            text = (
                f"{argument!r} in approval.rules is compared as a whole, and lacks {', '.join(lacks[0])}, so the rule"
                f" never counts; '{argument}.{next(iter(pattern))}' is a value within it"
            )
            yield ConfigFault((*path, "arguments", argument), text)


def _lacking(skill: SkillInfo, argument: str, pattern: Mapping[str, Any]) -> list[str]:
    """Return what each value of an object's argument has, by itself or by default, and a pattern of it has not."""
    described = skill.parameters.get("properties", {}).get(argument)
    required = described.get("required") if isinstance(described, Mapping) else None
    filled = with_defaults(skill.parameters, {argument: pattern})[argument]
    has = dict.fromkeys((*(required if isinstance(required, list) else ()), *filled))
    return [name for name in has if name not in pattern]


def called_like_tools(skills: Iterable[SkillInfo], tools: Container[str]) -> str:
    """Return a warning if skills that an agent gets are called like tools of its own; empty if none is."""
    names = ", ".join(sorted(skill.name for skill in skills if skill.name in tools))
    return f"its model can't call these skills: {names}; the agent's own tools have these names" if names else ""


def too_many(most: int | None, skills: int, own: int) -> str:
    """Return a warning if a model is offered more tools than its server takes; empty if not. ``most`` is None if
    there is no server."""
    if most is None or skills + own <= most:
        return ""
    return (
        f"the model is offered {skills + own} tools ({skills} skills and {own} of the agent's own), and model servers"
        f" take {most}: set `skills` to those that it needs, or `limits.tools` to what this server takes"
    )
