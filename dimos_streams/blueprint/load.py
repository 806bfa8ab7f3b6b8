"""Blueprints from YAML files, stock names and Python attributes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from dimos_streams.blueprint.model import Blueprint, ModuleSpec, Restart, merge
from dimos_streams.blueprint.names import checked_machine, checked_name, checked_namespace
from dimos_streams.blueprint.robots import robots_of
from dimos_streams.blueprint.stock import find_stock, stock_blueprints
from dimos_streams.bus.delivery import Delivery
from dimos_streams.common.importing import import_attribute
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.documents.document import Document, display_path, read_document
from dimos_streams.documents.problem import BlueprintError, Problem, problems_of
from dimos_streams.documents.validation import validated
from dimos_streams.errors import UserError
from dimos_streams.module import Module


def resolve(reference: str) -> Blueprint:
    """The blueprint of a stock name, a YAML file's path, or ``"package.module:attribute"``.

    Raises ``UserError``; with a place for each problem (``BlueprintError``) if there is such a blueprint but its form
    is wrong. Classes are not imported: see ``check``.
    """
    return _Loader().resolve(reference, Path())


def is_path(reference: str) -> bool:
    """Return whether a reference means a YAML file, and neither a name nor Python's attribute."""
    return reference.endswith((".yaml", ".yml")) or "/" in reference


def load(path: Path) -> Blueprint:
    """The blueprint of a YAML file. Raises ``UserError`` as ``resolve`` does."""
    return _Loader().load(path)


@dataclass(frozen=True, slots=True)
class StockSummary:
    """A stock blueprint as ``list`` shows it."""

    name: str
    robots: Mapping[str, int]
    """See ``robots_of``."""
    description: str
    """The first line of its description, or, if it can't be loaded, the reason."""


def stock_summaries() -> list[StockSummary]:
    """Return the summaries of all stock blueprints, by name."""
    return [_summary(name) for name in stock_blueprints()]


def _summary(name: str) -> StockSummary:
    try:
        found = resolve(name)
    except UserError as error:
        return StockSummary(name, {}, f"cannot be loaded: {error}".partition("\n")[0])
    return StockSummary(name, robots_of(found), found.description.partition("\n")[0])


class _Form(FrozenModel):
    """A mapping in the file. A known key without a value counts as left out."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}


class _ReplacementForm(_Form):
    type: str
    config: dict[str, Any] = Field(default_factory=dict)
    remap: dict[str, str | None] = Field(default_factory=dict)
    process: str | None = None
    restart: Restart = "on-failure"
    machine: str | None = None


class _ModuleForm(_ReplacementForm):
    namespace: str = ""


class _IncludeForm(_Form):
    blueprint: str
    namespace: str = ""
    without: list[str] = Field(default_factory=list)
    replace: dict[str, _ReplacementForm] = Field(default_factory=dict)
    types: dict[str, str] = Field(default_factory=dict)
    processes: dict[str, str | None] = Field(default_factory=dict)
    remap: dict[str, str | None] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        return {"blueprint": data} if isinstance(data, str) else data


class _FileForm(_Form):
    name: str = ""
    description: str = ""
    include: list[_IncludeForm] = Field(default_factory=list)
    modules: dict[str, _ModuleForm] = Field(default_factory=dict)
    external: list[str] = Field(default_factory=list)
    delivery: dict[str, Delivery] = Field(default_factory=dict)
    machines: dict[str, list[str]] = Field(default_factory=dict)


class _Loader:
    """Follows references to files and Python. Each file is read once, however often it is included."""

    def __init__(self) -> None:
        self._reading: list[Path] = []
        self._found: dict[Path, Blueprint | UserError] = {}

    def resolve(self, reference: str, folder: Path) -> Blueprint:
        """The blueprint that a reference in a file of ``folder`` means. Raises ``UserError``."""
        if reference.endswith(".py"):
            parts = Path(display_path(Path(reference))).with_suffix("").parts
            name = ".".join(parts) if all(map(str.isidentifier, parts)) else "package.module"
            raise UserError(f"{reference!r} is Python code, whose blueprints are given as '{name}:ATTRIBUTE'")
        if is_path(reference):
            return self.load(folder / Path(reference).expanduser())
        target = reference if ":" in reference else find_stock(reference, folder).target
        found = target if isinstance(target, Path) else import_attribute(target)
        if isinstance(found, Path):
            return self.load(found)
        if isinstance(found, type) and issubclass(found, Module):
            holds = f"modules: {{{found.__name__.lower()}: {{type: {target!r}}}}}"
            raise UserError(f"{target!r} is a Module class and no blueprint, which would hold it: `{holds}`")
        if not isinstance(found, Blueprint):
            raise UserError(f"{target!r} is neither a Blueprint nor the Path of a file but {type(found).__name__}")
        return found

    def load(self, path: Path) -> Blueprint:
        """The blueprint of a file. Raises ``UserError``."""
        path = path.resolve()
        if path in self._reading:
            circle = (*self._reading[self._reading.index(path) :], path)
            way = " -> ".join(map(display_path, circle))
            raise UserError(f"blueprints include each other in a circle: {way}")
        if path not in self._found:
            self._reading.append(path)
            try:
                self._found[path] = _Reading(read_document(path), path, self).blueprint()
            except UserError as error:
                self._found[path] = error
            finally:
                self._reading.pop()
        found = self._found[path]
        if isinstance(found, UserError):
            raise found
        return found


class _Reading:
    """One file on its way to a blueprint. Collects all problems of the file before it gives up."""

    def __init__(self, document: Document, path: Path, loader: _Loader) -> None:
        self._document, self._path, self._loader = document, path, loader
        self._problems: list[Problem] = []
        self._sources = document.sources("modules", None) | document.sources("include", None, "replace", None)

    def blueprint(self) -> Blueprint:
        form = validated(self._document, _FileForm, _called)
        parts: list[ModuleSpec | Blueprint] = []
        for index, include in enumerate(form.include):
            with self._at("include", index):
                parts.append(self._include(index, include))
        for name, module in form.modules.items():
            with self._at("modules", name, "namespace"):
                checked_namespace(module.namespace or "own")
            with self._at("modules", name):
                spec = self._module(name, module, ("modules", name))
                parts.append(spec.namespaced(module.namespace) if module.namespace else spec)
        self._raise()
        sources = {channel: self._document.where(("external", i)) for i, channel in enumerate(form.external)}
        sources |= {topic: self._document.where(("delivery", topic)) for topic in form.delivery}
        own = Blueprint(name="", external=tuple(form.external), delivery=form.delivery, sources=sources)
        parts.append(own)
        whole = merge(form.name or self._path.stem, parts, description=form.description.strip())
        for machine, names in form.machines.items():
            with self._at("machines", machine) as where:
                whole = whole.on_machines({machine: names}, source=where)
        twice = Counter(name for names in form.machines.values() for name in names)
        for name, count in twice.items():
            if count > 1:
                with self._at("machines"):
                    raise UserError(f"module {name!r} can be on one machine only")
        self._raise()
        return whole

    def _include(self, index: int, form: _IncludeForm) -> Blueprint:
        blueprint = self._loader.resolve(form.blueprint, self._path.parent)
        for number, name in enumerate(form.without):
            with self._at("include", index, "without", number):
                blueprint = blueprint.without(name)
        for name, module in form.replace.items():
            place = ("include", index, "replace", name)
            with self._at(*place):
                blueprint = blueprint.replaced(name, self._module(name.rpartition("/")[2], module, place))
        for name, type_name in form.types.items():
            with self._at("include", index, "types", name) as where:
                blueprint = blueprint.retyped({name: type_name}, source=where)
        for name, label in form.processes.items():
            with self._at("include", index, "processes", name) as where:
                blueprint = blueprint.in_processes({name: label}, source=where)
        for address, topic in form.remap.items():
            with self._at("include", index, "remap", address) as where:
                blueprint = blueprint.remap({address: topic}, source=where)
        for address, value in form.set.items():
            with self._at("include", index, "set", address) as where:
                blueprint = blueprint.configured({address: value}, source=where)
        with self._at("include", index, "namespace"):
            return blueprint.namespaced(form.namespace) if form.namespace else blueprint
        return blueprint

    def _module(self, name: str, form: _ReplacementForm, place: tuple[str | int, ...]) -> ModuleSpec:
        with self._at(*place, "process"):
            checked_name(form.process or "own")
        with self._at(*place, "machine"):
            checked_machine(form.machine or "own")
        return ModuleSpec(
            name=checked_name(name),
            type=form.type,
            config=form.config,
            remap=form.remap,
            process=form.process,
            restart=form.restart,
            machine=form.machine,
            sources=self._sources.get(place, {}),
        )

    @contextlib.contextmanager
    def _at(self, *path: str | int) -> Iterator[str]:
        """Note what goes wrong inside, together with the place in the file."""
        where = self._document.where(path)
        try:
            yield where
        except UserError as error:
            self._problems += problems_of(error, where)

    def _raise(self) -> None:
        if self._problems:
            raise BlueprintError(self._problems)


def _called(path: Sequence[str | int]) -> str:
    """A part of the file in words."""
    match path:
        case ["modules", name]:
            return f"module {name!r}"
        case ["include", int(index)]:
            return f"include number {index + 1}"
        case ["include", int(), "replace", name]:
            return f"replacement of {name!r}"
    return "the blueprint"
