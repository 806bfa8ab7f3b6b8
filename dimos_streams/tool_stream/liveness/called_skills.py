"""The skill that a call of a public name reaches, if several modules offer one of that name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S, ModuleView


@dataclass(frozen=True, slots=True)
class CalledSkill:
    """The skill that calls of its public name reach, and its module."""

    module: ModuleView
    info: SkillInfo
    shadowed: tuple[tuple[ModuleView, SkillInfo], ...] = ()
    """The skills of that name of other modules, which get no calls as long as this one does."""


def precedence(module: ModuleView) -> tuple[bool, float, str]:
    """The order of modules that offer a skill of one name: the first one gets its calls. A module that is alive comes
    before others, and of several the one known for longest: a later one does not take calls from it."""
    return module.age_s > ALIVE_S, module.since, module.name


def called_skills(modules: Iterable[ModuleView]) -> list[CalledSkill]:
    """Return one skill of each public name that these modules offer, the one that is called, in the order of the
    modules, then of definition."""
    offering = list(modules)
    named: dict[str, list[tuple[ModuleView, SkillInfo]]] = {}
    for module in sorted(offering, key=precedence):
        for info in module.skills:
            named.setdefault(info.name, []).append((module, info))
    called: list[CalledSkill] = []
    for module in offering:
        for info in module.skills:
            if (same := named[info.name])[0][1] is info and same[0][0] is module:
                called.append(CalledSkill(module, info, tuple(same[1:])))
    return called
