"""The check of the skills of a blueprint's modules: their names, their descriptions, what others say of them."""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from dimos_streams.blueprint.classes import module_config, reported_faults
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.common.names import namespace_of
from dimos_streams.common.readable.listed import listed
from dimos_streams.common.readable.spelling import misspelt
from dimos_streams.common.schemas.references import subschemas
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import UserError, did_you_mean, suggest
from dimos_streams.module import Module
from dimos_streams.operator.known_names import MCP_TOOLS
from dimos_streams.skill.declaration import policy_of
from dimos_streams.skill.spec import ModelParameters, SkillSpec

SkillsOfModules: TypeAlias = Mapping[str, Mapping[str, SkillSpec]]
"""The skills of each module, by its name; each by its own name."""


def colliding_skills(blueprint: Blueprint, skills: SkillsOfModules) -> Iterator[Problem]:
    """Yield public names that two skills share."""
    owners: dict[str, str] = {}
    for module, own in skills.items():
        spec = blueprint.modules[module]
        for name in (skill.info(spec.prefix).name for skill in own.values()):
            if name in owners:
                text = f"skill {name!r} is offered by both {owners[name]!r} and {module!r}; use another namespace"
                yield Problem(text, spec.where())
            owners.setdefault(name, module)


def skill_warnings(
    blueprint: Blueprint, classes: Mapping[str, type[Module]], skills: SkillsOfModules
) -> Iterator[Problem]:
    """Yield the warnings of modules about configs that concern the skills of others."""
    specs = blueprint.modules
    infos = {name: [skill.info(specs[name].prefix) for skill in own.values()] for name, own in skills.items()}
    vary = any(getattr(cls, "skills_vary", False) for cls in classes.values())
    for name, cls in classes.items():
        spec = specs[name]
        with contextlib.suppress(UserError):  # an invalid config is a problem of its own
            config = module_config(spec, cls)
            warnings = reported_faults(spec, cls, "skill_warnings", config, name, infos)
            if isinstance(warnings, Problem):
                yield warnings
                continue
            for path, text in warnings:
                if vary and path[-1].isdigit():
                    continue  # an entry of a list, which may mean a skill that is known only while it runs
                yield Problem(f"module {name!r}: {text}", spec.where("config", *path), "warning")


def undescribed_skills(blueprint: Blueprint, skills: SkillsOfModules) -> Iterator[Problem]:
    """Yield warnings of skills for everyone that nobody could know what to do with; one for all if Python itself has
    dropped their docstrings."""
    for module, own in skills.items():
        spec = blueprint.modules[module]
        names = [each.name for each in own.values() if each.policy.audience == "everyone" and not each.description]
        if names and sys.flags.optimize >= 2:
            text = "skills have no docstrings, as Python runs with -OO (or PYTHONOPTIMIZE=2), which drops them"
            yield Problem(f"{text}; a model knows nothing else of a skill", severity="warning")
            return
        if names:
            text = f"module {module!r}: {spec.type} has skills without a docstring: {', '.join(names)}"
            why = "a model knows nothing else of a skill"
            yield Problem(f"{text}; {why}", spec.where("type"), "warning")


def skills_that_are_no_tools(blueprint: Blueprint, skills: SkillsOfModules) -> Iterator[Problem]:
    """Yield warnings of skills for everyone whose names are those of the bridge's own tools for MCP clients."""
    for module, own in skills.items():
        spec = blueprint.modules[module]
        infos = [skill.info(spec.prefix) for skill in own.values()]
        if names := [info.name for info in infos if info.audience == "everyone" and info.name in MCP_TOOLS]:
            text = f"module {module!r}: MCP clients can't call these of its skills: {', '.join(names)}"
            yield Problem(f"{text}; the bridge's own tools have these names", spec.where("type"), "warning")


def misdescribed_parameters(blueprint: Blueprint, skills: SkillsOfModules) -> Iterator[Problem]:
    """Yield warnings of docstrings that describe parameters which their skills do not have: nobody is shown that."""
    for module, own in skills.items():
        spec = blueprint.modules[module]
        for skill in own.values():
            names = list(skill.parameter_names)
            for stray in skill.stray_descriptions:
                known = suggest(stray, names) or f" (parameters: {', '.join(names) or 'none'})"
                text = (
                    f"the docstring of skill {skill.name!r} describes {stray!r}, which is no parameter of it{known}"
                )
                yield Problem(f"module {module!r}: {spec.type}: {text}", spec.where("type"), "warning")


def ignored_fields(blueprint: Blueprint, skills: SkillsOfModules) -> Iterator[Problem]:
    """Yield warnings of parameters in whose objects a misspelt field would be dropped without a word."""
    for module, own in skills.items():
        spec = blueprint.modules[module]
        # What takes a call back may take part of its arguments.
        undoing = {skill.policy.undo for skill in own.values()}
        for skill in own.values():
            if skill.name in undoing or not isinstance(skill.parameters, ModelParameters):
                continue
            for name, schema in skill.parameters.schema()["properties"].items():
                if models := sorted(set(_ignoring(schema))):
                    text = (
                        f"parameter {name!r} of skill {skill.name!r} ignores misspelt fields of {listed(models)};"
                        ' `model_config = ConfigDict(extra="forbid")` there refuses them'
                    )
                    yield Problem(f"module {module!r}: {spec.type}: {text}", spec.where("type"), "warning")


def _ignoring(schema: object) -> Iterator[str]:
    """Yield the names of a schema's models that say nothing of other fields than their own."""
    if (
        isinstance(schema, Mapping)
        and {"properties", "title"} <= schema.keys()
        and "additionalProperties" not in schema
    ):
        yield str(schema["title"])
    for part in subschemas(schema):
        yield from _ignoring(part)


def lost_motions(
    blueprint: Blueprint, classes: Mapping[str, type[Module]], skills: SkillsOfModules
) -> Iterator[Problem]:
    """Yield warnings of skills that override one that may move the robot, and do not say that they do: plans, leases
    and a stop would pass them over."""
    for module, own in skills.items():
        spec = blueprint.modules[module]
        for skill in own.values():
            method = getattr(skill.function, "__name__", "")
            overridden = (vars(base).get(method) for base in classes[module].__mro__)
            moving = any(policy.may_move for each in overridden if (policy := policy_of(each)) is not None)
            if moving and not skill.policy.may_move and "motion" not in skill.policy.model_fields_set:
                text = (
                    f"skill {skill.name!r} overrides one that may move the robot, and says neither motion=True nor"
                    " which resources it holds: @skill(…) of the method that overrides states all of it, motion=False"
                    " where it moves nothing"
                )
                yield Problem(f"module {module!r}: {spec.type}: {text}", spec.where("type"), "warning")


def misspelt_resources(blueprint: Blueprint, skills: SkillsOfModules) -> Iterator[Problem]:
    """Yield warnings of resources that one skill alone holds and that are misspelt from those of others: their calls
    would run beside each other, which they are not meant to."""
    holders: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for module, own in skills.items():
        for skill in own.values():
            for resource in skill.policy.resources:
                holders[blueprint.modules[module].prefix + resource].append((module, skill.name))
    before: dict[str, list[str]] = defaultdict(list)
    for resource, held_by in sorted(holders.items(), key=lambda item: -len(item[1])):
        earlier = before[namespace_of(resource)]
        if len(held_by) == 1 and (near := misspelt(resource, earlier)):
            spec, skill_name = blueprint.modules[held_by[0][0]], held_by[0][1]
            meant = did_you_mean([each.removeprefix(spec.prefix) for each in near])
            text = f"no other skill than {skill_name!r} holds {resource.removeprefix(spec.prefix)!r}{meant}"
            yield Problem(f"module {spec.name!r}: {spec.type}: {text}", spec.where("type"), "warning")
        earlier.append(resource)
