"""Settings on top of a blueprint: default < blueprint < environment < command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dimos_streams.blueprint.classes import module_class, module_config
from dimos_streams.blueprint.files.draft import Draft, Findings
from dimos_streams.blueprint.model import Blueprint, ModuleSpec, UnknownModuleError
from dimos_streams.common.invalid import is_at
from dimos_streams.common.json.canonical import with_sorted_sets
from dimos_streams.common.secrets import know_settings, masked, redacted, telling_name
from dimos_streams.documents.document import value_of
from dimos_streams.documents.fields import spelled
from dimos_streams.errors import UserError, suggest
from dimos_streams.live_settings import live_settings

PREFIX = "DIMOS_STREAMS__"
"""The prefix of environment variables that are settings: ``DIMOS_STREAMS__FOLLOW__DISTANCE_M=1.2``."""

DEFAULT = "default"
"""The source of a value that nobody has given: it is its class's."""
COMMAND_LINE = "command line"
"""The source of a value that was given with ``--set``, or another option."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One value that a module will run with."""

    module: str
    field: str
    """The field's path, with dots between nested fields."""
    value: Any
    """Plain data, as JSON has it; ``[redacted]`` if it is secret."""
    source: str
    """``"file:line"``, ``"environment VARIABLE"``, ``COMMAND_LINE`` or ``DEFAULT``."""
    live: bool = False
    """True if it may be changed while the module runs."""


def apply_settings(
    blueprint: Blueprint, environment: Mapping[str, str] | None = None, assignments: Iterable[str] = ()
) -> Blueprint:
    """The blueprint with environment variables and then ``module.field=value`` assignments applied.

    Values are read as YAML 1.2, or as plain text where that does not fit the field. Only modules that are set are
    imported. Raises ``BlueprintError`` that names every unknown module, unknown field and bad value.
    """
    return with_settings(Draft(blueprint), environment, assignments).sound()


def with_settings(
    draft: Draft, environment: Mapping[str, str] | None = None, assignments: Iterable[str] = ()
) -> Draft:
    """A draft with environment variables and then ``module.field=value`` assignments applied, and with whatever is
    wrong with these among its problems."""
    findings = Findings()
    findings.note(draft.problems, wiring=not draft.whole)
    blueprint = draft.blueprint
    for source, address, text in _addresses(draft, environment or {}, assignments, findings):
        with findings.at(source, among=draft):
            module, path = blueprint.split_address(address)
            blueprint = blueprint.with_modules([_set(blueprint.modules[module], path.split("."), text, source)])
    for name, spec in sorted(blueprint.modules.items()):
        if spec is not draft.blueprint.modules[name]:
            with findings.at(""):
                module_config(spec, module_class(spec))
    return findings.draft(blueprint)


def explain(blueprint: Blueprint) -> list[SettingRow]:
    """Return every value that every module will run with, and where it comes from.

    Raises ``BlueprintError`` with all the problems of all configs.
    """
    findings = Findings()
    rows: list[SettingRow] = []
    for spec in blueprint.modules.values():
        with findings.at(""):
            rows += settings_of(spec)
    findings.draft(blueprint).sound()
    return rows


def settings_of(spec: ModuleSpec) -> list[SettingRow]:
    """Return every value that a module will run with, and where it comes from. Raises ``UserError``."""
    config = module_config(spec, module_class(spec))
    live = frozenset(live_settings(type(config)))
    values = with_sorted_sets(config.model_dump(mode="json"), config.model_dump())
    return [dataclasses.replace(row, live=row.field in live) for row in _rows(spec, values, ())]


def defaults_of(blueprint: Blueprint) -> dict[str, dict[str, Any]]:
    """Return the values that the blueprint leaves to the modules' classes, by module and path. Raises
    ``UserError``."""
    return {
        name: {row.field: row.value for row in settings_of(spec) if row.source == DEFAULT}
        for name, spec in blueprint.modules.items()
    }


def _addresses(
    draft: Draft, environment: Mapping[str, str], assignments: Iterable[str], findings: Findings
) -> Iterator[tuple[str, str, str]]:
    """Yield source, ``module.field`` and text of each setting, in the order in which they count."""
    for variable, text in sorted(environment.items()):
        if variable.startswith(PREFIX):
            source = f"environment {variable}"
            with findings.at(source, among=draft):
                yield source, _address_of(draft.blueprint, variable), text
    for assignment in assignments:
        address, equals, text = assignment.partition("=")
        if equals:
            yield COMMAND_LINE, address.strip(), text
        else:
            with findings.at(COMMAND_LINE):
                raise UserError(f"{assignment!r} is not of the form module.field=value")


def _address_of(blueprint: Blueprint, variable: str) -> str:
    """``"robot1/follow.distance_m"`` for ``DIMOS_STREAMS__ROBOT1__FOLLOW__DISTANCE_M``; the longest module wins."""
    rest = variable.removeprefix(PREFIX).lower()
    for name in sorted(blueprint.modules, key=len, reverse=True):
        start = f"{name.replace('/', '__')}__"
        if rest.startswith(start):
            return f"{name}.{rest.removeprefix(start).replace('__', '.')}"
    module = rest.rpartition("__")[0].replace("__", "/") or rest
    near = suggest(module, blueprint.modules)
    if "/" in near:
        near += " ('/' is written '__' here)"
    raise UnknownModuleError(f"it names no module and setting of blueprint {blueprint.name!r}{near}")


def _set(spec: ModuleSpec, path: list[str], text: str, source: str) -> ModuleSpec:
    """The module with one value set; the text itself is the value where what it means as YAML does not fit."""
    cls = module_class(spec)
    field = spelled(cls.config_type(), path)
    know_settings(text, telling_name(field))  # before something is said of it
    value, why = value_of(text)
    changed = spec.configured(field, value, source)
    plain = spec.configured(field, text, source)
    if why and _misfits(plain, field):
        raise UserError(f"module {spec.name!r}: {'.'.join(field)}: {why}")
    if not _misfits(changed, field):
        return changed
    # The null that an empty text means as YAML is not what was given.
    return changed if text.strip() and _misfits(plain, field) else plain


def _misfits(spec: ModuleSpec, field: tuple[str, ...]) -> bool:
    """Return whether the config has a fault at a field or inside it."""
    try:
        module_class(spec).config_type().model_validate(dict(spec.config))
    except ValidationError as error:
        return is_at(error, field)
    except Exception:  # of an author's own check, which was given what it does not expect
        return True
    return False


def _rows(spec: ModuleSpec, values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[SettingRow]:
    for name, value in values.items():
        field = (*path, name)
        if isinstance(value, Mapping) and value:
            yield from _rows(spec, value, field)
        else:
            shown = masked(value, telling_name(field))
            yield SettingRow(spec.name, redacted(".".join(field)), shown, _source(spec, field))


def _source(spec: ModuleSpec, field: tuple[str, ...]) -> str:
    """The origin of a value: somebody wrote it, or it is the class's default."""
    node: Any = spec.config
    for name in field:
        if not isinstance(node, Mapping) or name not in node:
            return DEFAULT
        node = node[name]
    return spec.where("config", *field)
