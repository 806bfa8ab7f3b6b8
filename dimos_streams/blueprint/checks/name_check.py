"""The check that names are short enough: modules are told apart by theirs on the bus, and processes and runs have
files of theirs."""

from __future__ import annotations

from collections.abc import Iterator

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.names import run_name
from dimos_streams.common.names import MAX_NAME
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.documents.problem import Problem

_SHOWN = 60


def long_names(blueprint: Blueprint) -> Iterator[Problem]:
    """Yield the names of the blueprint, its modules and their processes that are too long to be used."""
    for machine in dict.fromkeys(spec.machine or "" for spec in blueprint.modules.values()):
        name = run_name(blueprint.name, machine)
        if len(name.encode()) > MAX_NAME:
            yield _too_long("the name of its runs", name, "bytes", "")
    for name, spec in blueprint.modules.items():
        if len(name) > MAX_NAME:
            yield _too_long("the name of a module", name, "characters", spec.where("type"))
        if spec.process is not None and len(spec.process) > MAX_NAME:
            yield _too_long("the name of a process", spec.process, "characters", spec.where("process"))


def _too_long(what: str, name: str, unit: str, where: str) -> Problem:
    return Problem(f"{what}, {shortened(name, _SHOWN)!r}, is too long: {MAX_NAME} {unit} are possible", where)
