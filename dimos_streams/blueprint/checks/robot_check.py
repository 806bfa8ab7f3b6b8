"""The check of the modules of one robot beside each other: they say the same of it, and a velocity gate judges those
that move it."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from dimos_streams.blueprint.checks.delivery_check import VELOCITIES
from dimos_streams.blueprint.checks.skill_check import SkillsOfModules
from dimos_streams.blueprint.classes import module_class, module_config
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.wiring import Port, ports_of
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import UserError
from dimos_streams.module import Module, OfRobot


class _RobotSetting(NamedTuple):
    """A setting in which one module says what its robot is like."""

    spec: ModuleSpec
    path: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        return f"{'.'.join((self.spec.name, *self.path))} is {self.value!r}"


def contradictions(blueprint: Blueprint, classes: Mapping[str, type[Module]]) -> Iterator[Problem]:
    """Yield warnings of settings marked ``OfRobot`` in which modules of one robot differ."""
    said: dict[tuple[str, str], list[_RobotSetting]] = defaultdict(list)
    for name, cls in classes.items():
        spec = blueprint.modules[name]
        with contextlib.suppress(UserError):  # an invalid config is a problem of its own
            for path, value in _of_robot(module_config(spec, cls)):
                said[spec.namespace, path[-1]].append(_RobotSetting(spec, path, value))
    for (_, setting), each in said.items():
        if any(one.value != each[0].value for one in each):
            text = f"the modules of one robot differ in {setting}: {', '.join(map(str, each))}; set the same for all"
            yield Problem(text, each[0].spec.where("config", *each[0].path), "warning")


def ungated_motions(blueprint: Blueprint, skills: SkillsOfModules, ports: Iterable[Port]) -> Iterator[Problem]:
    """Yield a warning for each robot that skills move at speeds that no velocity gate judges, here or on another
    machine."""
    everywhere = (*blueprint.modules.values(), *blueprint.elsewhere.values())
    gated = {spec.namespace for spec in everywhere if _is_gate(spec)}
    moving: dict[str, list[Port]] = defaultdict(list)
    for port in ports:
        if port.stream.direction == "out" and port.type_name in VELOCITIES:
            namespace = blueprint.modules[port.module].namespace
            if namespace not in gated and any(skill.policy.motion for skill in skills[port.module].values()):
                moving[namespace].append(port)
    for namespace in moving:
        names = ", ".join(port.name for port in moving[namespace])
        text = (
            f"skills move the robot by {names}, and it has no velocity gate: nothing limits its speed or stops it"
            " before obstacles, and no pause or stop-robot is confirmed"
        )
        yield Problem(text, blueprint.modules[moving[namespace][0].module].where(), "warning")


def _is_gate(spec: ModuleSpec) -> bool:
    """Return whether a module is one past which no velocities go."""
    cls = module_class(spec)
    return any(
        port.stream.direction == "out" and port.type_name in VELOCITIES and port.stream.name in cls.exclusive_outputs
        for port in ports_of(spec, cls)
    )


def _of_robot(config: BaseModel) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the paths and values of a config's settings that say what the robot is like."""
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if OfRobot in field.metadata:
            yield (name,), value
        elif isinstance(value, BaseModel):
            yield from (((name, *path), inner) for path, inner in _of_robot(value))
