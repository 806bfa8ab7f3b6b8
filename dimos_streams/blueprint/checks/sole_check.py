"""The check of modules that do their work for a whole bus: of each such kind there is one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.documents.problem import Problem
from dimos_streams.module import Module


def doubled_modules(blueprint: Blueprint, classes: Mapping[str, type[Module]]) -> Iterator[Problem]:
    """Yield modules beside others of their kind where a bus has one. All machines of a blueprint share its bus."""
    kinds: dict[type, list[str]] = defaultdict(list)
    for name, cls in classes.items():
        if (kind := _sole_kind(cls)) is not None:
            kinds[kind].append(name)
    for kind, (first, *others) in kinds.items():
        for name in others:
            own_name = name.rpartition("/")[2]
            text = (
                f"modules {first!r} and {name!r} would both be the {kind.__name__} of one bus, which has one for all"
                f" robots and machines: leave one out (of an include, with `without: [{own_name}]`)"
            )
            yield Problem(text, blueprint.modules[name].where())


def _sole_kind(cls: type[Module]) -> type | None:
    """Return the class that says of itself and its subclasses that a bus has one, or None."""
    return next((base for base in reversed(cls.__mro__) if vars(base).get("one_per_bus")), None)
