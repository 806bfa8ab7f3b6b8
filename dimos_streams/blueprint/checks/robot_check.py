"""The check of what several modules say of their robot: it is one robot, so they say the same."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from dimos_streams.blueprint.classes import module_config
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
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
        with contextlib.suppress(UserError):  # a config that is none is a problem of its own
            for path, value in _of_robot(module_config(spec, cls)):
                said[spec.namespace, path[-1]].append(_RobotSetting(spec, path, value))
    for (_, setting), each in said.items():
        if any(one.value != each[0].value for one in each):
            text = f"the modules of one robot differ in {setting}: {', '.join(map(str, each))}; set the same for all"
            yield Problem(text, each[0].spec.where("config", *each[0].path), "warning")


def _of_robot(config: BaseModel) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the paths and values of a config's settings that say what the robot is like."""
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if OfRobot in field.metadata:
            yield (name,), value
        elif isinstance(value, BaseModel):
            yield from (((name, *path), inner) for path, inner in _of_robot(value))
