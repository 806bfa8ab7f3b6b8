"""From what a blueprint says of a module to its class, its config and an instance."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dimos_streams.blueprint.fields import fields_at
from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.blueprint.problem import BlueprintError, Problem, fault
from dimos_streams.errors import UserError, suggest
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.secrets import know_settings

EXTRAS = {"mujoco": "sim", "simplejpeg": "sim", "cv2": "vision", "openai": "openai"}
"""The extra of this package that brings each Python package."""


def instantiate(spec: ModuleSpec, context: RunContext) -> Module:
    """The module that a spec describes, not started yet; its context gets the spec's namespace.

    Raises ``BlueprintError`` if the class can't be imported or its config is not valid.
    """
    cls = module_class(spec)
    config = module_config(spec, cls)
    return cls(config, name=spec.name, context=dataclasses.replace(context, namespace=spec.prefix))


def module_class(spec: ModuleSpec) -> type[Module]:
    """The class of a module. Raises ``BlueprintError`` that says what is missing and how to get it."""
    try:
        return import_module_class(spec.type)
    except UserError as error:
        raise BlueprintError([Problem(f"module {spec.name!r}: {error}", spec.where("type"))]) from error


def module_config(spec: ModuleSpec, cls: type[Module]) -> ModuleConfig:
    """The config of a module, validated. Raises ``BlueprintError`` that names each bad setting and its place."""
    know_settings(spec.config)  # before something is said of them
    expected = cls.config_type()
    try:
        return expected.model_validate(dict(spec.config))
    except ValidationError as error:
        problems = [_config_problem(spec, expected, detail) for detail in error.errors()]
        raise BlueprintError(problems) from error


def missing_packages(cls: type[Module]) -> list[str]:
    """Those of the ``packages`` that a module's class declares that are not installed."""
    packages: Iterable[str] = getattr(cls, "packages", ())
    return [_how_to_get(package) for package in packages if importlib.util.find_spec(package) is None]


def import_module_class(reference: str) -> type[Module]:
    """The class that ``"package.module:Class"`` names. Raises ``UserError``."""
    found = import_attribute(reference)
    if not (isinstance(found, type) and issubclass(found, Module)):
        raise UserError(f"{reference!r} is not a Module class but {found!r}")
    return found


def import_attribute(reference: str) -> Any:
    """The object that ``"package.module:attribute"`` names. Raises ``UserError`` with the nearest one."""
    module_name, colon, attribute = reference.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module_name.split("."), *attribute.split(".")]):
        raise UserError(f"{reference!r} is not of the form 'package.module:Name'")
    found: Any = _import(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [name for name in dir(found) if not name.startswith("_")]
            raise UserError(f"{module_name!r} has no {attribute!r}{suggest(part, names)}")
        found = getattr(found, part)
    return found


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            near = suggest(missing.rpartition(".")[2], _beside(missing))
            raise UserError(f"there is no Python module {missing!r}{near}") from error
        raise UserError(f"{name!r} can't be imported: {_how_to_get(missing)}") from error
    except Exception as error:  # somebody's module may raise anything when it is imported
        raise UserError(f"{name!r} can't be imported: {type(error).__name__}: {error}") from error


def _beside(name: str) -> list[str]:
    """The names of what is in the package that ``name`` would be in."""
    package = name.rpartition(".")[0]
    if not package:
        return []
    path = getattr(importlib.import_module(package), "__path__", [])
    return [info.name for info in pkgutil.iter_modules(path)]


def _how_to_get(package: str) -> str:
    extra = EXTRAS.get(package.partition(".")[0])
    return f"{package!r} is not installed: pip install " + (f"'dimos-streams[{extra}]'" if extra else repr(package))


def _config_problem(spec: ModuleSpec, expected: type[ModuleConfig], detail: ErrorDetails) -> Problem:
    path = [str(part) for part in detail["loc"]]
    where = spec.where("config", *path)
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        near = suggest(path[-1], fields_at(expected, path[:-1]))
        return Problem(f"module {spec.name!r} has no setting {'.'.join(path)!r}{near}", where)
    if detail["type"] in ("missing", "missing_argument"):
        return Problem(f"module {spec.name!r} needs the setting {'.'.join(path)!r}", where)
    return Problem(f"module {spec.name!r}: {fault(detail)}", where)
