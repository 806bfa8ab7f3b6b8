"""The way from one file to a draft: everything that is wrong in it is noted, and the rest is read."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from dimos_streams.blueprint.files.draft import Draft, Findings
from dimos_streams.blueprint.files.forms import FileForm, IncludeForm, ModuleForm, ReplacementForm
from dimos_streams.blueprint.merging import doubles, joined
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.names import checked_machine, checked_name, checked_namespace
from dimos_streams.documents.document import Document
from dimos_streams.documents.validation import usable, validated
from dimos_streams.errors import UserError

Included = Callable[[str, Path], Draft]
"""A function that finds the blueprint that a reference in a file of a folder means. Raises ``UserError``."""
_BESIDE = frozenset({"name", "description", "delivery"})
"""The keys of a file that say nothing of modules and their connections."""


def draft_of(document: Document, path: Path, included: Included) -> Draft:
    """The draft of a file. Raises ``UserError`` if nothing of it is as in a blueprint."""
    return _Reading(document, path, included).draft()


class _Reading:
    def __init__(self, document: Document, path: Path, included: Included) -> None:
        self._document, self._path, self._included = document, path, included
        self._findings = Findings()
        self._sources = document.sources("modules", None) | document.sources("include", None, "replace", None)

    def draft(self) -> Draft:
        form, faults = usable(self._document, FileForm, _called)
        for key, problems in faults.items():
            self._findings.note(problems, wiring=key not in _BESIDE)
        parts: list[ModuleSpec | Blueprint] = []
        places: list[str] = []
        for index in range(len(form.include)):
            with self._at("include", index, wiring=True) as where:
                parts.append(self._include(index))
                places.append(where)
        for name in form.modules:
            with self._at("modules", name, wiring=True):
                parts.append(self._own_module(name))
        parts.append(self._outside(form))
        self._findings.note(doubles(parts, places), wiring=True)
        whole = joined(form.name or self._path.stem, parts, description=form.description.strip())
        placed = self._on_machines(whole, form.machines)
        # Of a list that is not whole nobody can say which modules no machine would run.
        return self._findings.draft(whole if "machines" in faults else placed)

    def _include(self, index: int) -> Blueprint:
        place = ("include", index)
        form = validated(self._document, IncludeForm, _called, place)
        draft = self._included(form.blueprint, self._path.parent)
        self._findings.note(draft.problems, wiring=not draft.whole)
        blueprint = self._reconnected(draft, form, place)
        for name, label in form.processes.items():
            with self._at(*place, "processes", name, among=draft) as where:
                blueprint = blueprint.in_processes({name: label}, source=where)
        for address, value in form.set.items():
            with self._at(*place, "set", address, among=draft) as where:
                blueprint = blueprint.configured({address: value}, source=where)
        if not form.namespace:
            return blueprint
        with self._at(*place, "namespace", wiring=True):
            return blueprint.namespaced(form.namespace)
        return blueprint.model_copy(update={"modules": {}})  # which without it may have others' names

    def _reconnected(self, draft: Draft, form: IncludeForm, place: tuple[str | int, ...]) -> Blueprint:
        """The included blueprint with other modules, and with these otherwise connected."""
        blueprint = draft.blueprint
        for number, name in enumerate(form.without):
            with self._at(*place, "without", number, among=draft, wiring=True):
                blueprint = blueprint.without(name)
        for name, module in form.replace.items():
            with self._at(*place, "replace", name, among=draft, wiring=True):
                spec = self._module(name.rpartition("/")[2], module, (*place, "replace", name))
                blueprint = blueprint.replaced(name, spec)
        for name, type_name in form.types.items():
            with self._at(*place, "types", name, among=draft, wiring=True) as where:
                blueprint = blueprint.retyped({name: type_name}, source=where)
        for address, topic in form.remap.items():
            with self._at(*place, "remap", address, among=draft, wiring=True) as where:
                blueprint = blueprint.remap({address: topic}, source=where)
        return blueprint

    def _own_module(self, name: str) -> ModuleSpec:
        form, faults = usable(self._document, ModuleForm, _called, ("modules", name))
        # What was meant by a key that is wrong may be a connection.
        self._findings.note((problem for found in faults.values() for problem in found), wiring=True)
        with self._at("modules", name, "namespace"):
            checked_namespace(form.namespace or "own")
        spec = self._module(name, form, ("modules", name))
        return spec.namespaced(form.namespace) if form.namespace else spec

    def _module(self, name: str, form: ReplacementForm, place: tuple[str | int, ...]) -> ModuleSpec:
        with self._at(*place):
            checked_name(name)
        with self._at(*place, "process"):
            checked_name(form.process or "own")
        with self._at(*place, "machine"):
            checked_machine(form.machine or "own")
        return ModuleSpec(
            name=name,
            type=form.type,
            config=form.config,
            remap=form.remap,
            process=form.process,
            restart=form.restart,
            machine=form.machine,
            sources=self._sources.get(place, {}),
        )

    def _outside(self, form: FileForm) -> Blueprint:
        """Return what the file says of topics."""
        given = enumerate(self._document.data["external"] if form.external else ())
        sources = {entry: self._document.where(("external", i)) for i, entry in given if entry in form.external}
        sources |= {topic: self._document.where(("delivery", topic)) for topic in form.delivery}
        return Blueprint(name="", external=tuple(form.external), delivery=form.delivery, sources=sources)

    def _on_machines(self, blueprint: Blueprint, machines: Mapping[str, Sequence[str]]) -> Blueprint:
        so_far = self._findings.draft(blueprint)
        for machine, names in machines.items():
            for name in names:
                with self._at("machines", machine, among=so_far) as where:
                    blueprint = blueprint.on_machines({machine: [name]}, source=where)
        twice = Counter(name for names in machines.values() for name in names)
        for name in (name for name, count in twice.items() if count > 1):
            with self._at("machines"):
                raise UserError(f"module {name!r} can be on one machine only")
        return blueprint

    @contextlib.contextmanager
    def _at(self, *path: str | int, among: Draft | None = None, wiring: bool = False) -> Iterator[str]:
        """Note what goes wrong inside, together with the place in the file; see ``Findings.at``."""
        where = self._document.where(path)
        with self._findings.at(where, among=among, wiring=wiring):
            yield where


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
