"""Several blueprints and modules as one blueprint, and modules of one name among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.bus.delivery import Delivery
from dimos_streams.documents.problem import BlueprintError, Problem
from dimos_streams.errors import UserError

MAX_MODULES = 5000
"""The largest number of a blueprint's modules. Files that each include the next one twice make too many to hold."""


def merge(name: str, parts: Iterable[ModuleSpec | Blueprint], *, description: str = "") -> Blueprint:
    """One blueprint of modules and whole blueprints.

    Raises ``BlueprintError`` if two modules have the same name, ``UserError`` for too many modules.
    """
    parts = list(parts)
    if problems := doubles(parts):
        raise BlueprintError(problems)
    return joined(name, parts, description=description)


def joined(name: str, parts: Iterable[ModuleSpec | Blueprint], *, description: str = "") -> Blueprint:
    """One blueprint of modules and whole blueprints; where modules have one name, the last of them stays. Raises
    ``UserError`` for too many modules."""
    modules: dict[str, ModuleSpec] = {}
    external: dict[str, None] = {}
    delivery: dict[str, Delivery] = {}
    sources: dict[str, str] = {}
    for part in parts:
        if isinstance(part, Blueprint):
            external |= dict.fromkeys(part.external)
            delivery |= part.delivery
            sources |= part.sources
        modules |= {spec.name: spec for spec in _modules_of(part)}
        if len(modules) > MAX_MODULES:
            raise UserError(f"blueprint {name!r} has more than {MAX_MODULES} modules")
    return Blueprint(
        name=name,
        description=description,
        modules=modules,
        external=tuple(external),
        delivery=delivery,
        sources=sources,
    )


def doubles(parts: Iterable[ModuleSpec | Blueprint], places: Sequence[str] = ()) -> list[Problem]:
    """The problems of modules with the name of another one. ``places`` are where the first of the parts are named."""
    seen: dict[str, tuple[ModuleSpec, str]] = {}
    problems = []
    for part, place in zip(parts, chain(places, repeat("")), strict=False):
        again: dict[str, list[str]] = {}
        for spec in _modules_of(part):
            first, whose = seen.get(spec.name, (None, ""))
            if first is not None and spec.is_as_in(first):
                again.setdefault(whose, []).append(spec.name)
            elif first is not None:
                problems.append(_twice(first, spec))
            seen[spec.name] = spec, part.name
        problems += [_brought_again(part.name, whose, names, place) for whose, names in again.items()]
    return problems


def _modules_of(part: ModuleSpec | Blueprint) -> Iterable[ModuleSpec]:
    return part.modules.values() if isinstance(part, Blueprint) else [part]


def _twice(first: ModuleSpec, second: ModuleSpec) -> Problem:
    also = f" (also at {first.where()})" if first.where() else ""
    text = (
        f"module {second.name!r} is there twice{also}; give one of them another name or namespace, or, if it comes"
        f" from an include, change its settings there: `set: {{{second.name}.SETTING: VALUE}}`"
    )
    return Problem(text, second.where())


def _brought_again(second: str, first: str, names: Iterable[str], place: str) -> Problem:
    """The problem of modules that two blueprints include, of one that each of them includes, for instance."""
    modules = ", ".join(names)
    text = (
        f"{second!r} brings modules that {first!r} has brought already: {modules}; leave them out of one,"
        f" `without: [{modules}]`, or give it a namespace"
    )
    return Problem(text, place)
