"""Blueprints in Python: the same frozen description that a YAML file gives.

    follow = blueprint(
        "follow",
        include("base-robot"),
        module(FollowPerson, name="follow", distance_m=1.8, process="skills", remap={"cmd_vel": "skill_vel"}),
    )

Streams of equal name and type connect by themselves, since a stream's topic is its name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from dimos_streams.blueprint.checks.argument_check import (
    check_blueprint,
    check_class,
    check_parts,
    check_replacements,
    check_settings,
    check_texts,
    plain,
    with_checked_arguments,
)
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.merging import merge
from dimos_streams.blueprint.model import Blueprint, ModuleSpec, Restart
from dimos_streams.blueprint.names import checked_machine, checked_name
from dimos_streams.bus.delivery import Delivery
from dimos_streams.documents.document import display_path
from dimos_streams.errors import UserError, suggest
from dimos_streams.module import Module


@with_checked_arguments
def blueprint(
    name: str,
    *parts: ModuleSpec | Blueprint,
    description: str = "",
    external: tuple[str, ...] = (),
    delivery: Mapping[str, Delivery] | None = None,
    machines: Mapping[str, Iterable[str]] | None = None,
) -> Blueprint:
    """Put modules and whole blueprints together; ``machines`` has names of modules by the machine on which they run.

    Raises ``UserError`` for anything that is not a part, for two modules of the same name, for a ``delivery`` other
    than ``"reliable"`` and ``"latest"``, and for an unknown module of a machine.
    """
    check_parts(name, parts)
    for machine, names in (machines or {}).items():
        check_texts("blueprint(…)", f"machines[{machine!r}]", names)
    chosen = dict(delivery or {})
    for topic, choice in chosen.items():
        if choice not in get_args(Delivery):
            valid = ", ".join(get_args(Delivery))
            raise UserError(f"delivery of {topic!r} can't be {choice!r}: use one of {valid}")
    sources = dict.fromkeys((*external, *chosen), _caller())
    outside = Blueprint(name="", external=external, delivery=chosen, sources=sources)
    whole = merge(name, (*parts, outside), description=description)
    return whole.on_machines(machines, source=_caller()) if machines else whole


@with_checked_arguments
def module(
    cls: type[Module] | str,
    *,
    name: str | None = None,
    process: str | None = None,
    restart: Restart = "on-failure",
    machine: str | None = None,
    remap: Mapping[str, str | None] | None = None,
    config: Mapping[str, Any] | None = None,
    **settings: Any,
) -> ModuleSpec:
    """Describe one module of a class, or of ``"package.module:Class"``.

    The name is the class's in snake case unless given. ``settings`` are config values; ``config`` takes those whose
    names are taken here. They are kept as plain data. Raises ``UserError`` for a class inside a function, a name that
    can't be one and an unknown ``restart``; the config is validated by ``check``.
    """
    if restart not in get_args(Restart):
        choices = get_args(Restart)
        raise UserError(f"restart can't be {restart!r}: use one of {', '.join(choices)}{suggest(restart, choices)}")
    reference = _reference(cls)
    check_settings(cls, settings, ("name", "process", "restart", "machine", "remap", "config"))
    return ModuleSpec(
        name=checked_name(name or _snake_case(reference.rpartition(":")[2])),
        type=reference,
        config=plain({**(config or {}), **settings}),
        remap=dict(remap or {}),
        process=process and checked_name(process),
        restart=restart,
        machine=machine and checked_machine(machine),
        sources={"": _caller()},
    )


@with_checked_arguments
def include(
    other: Blueprint | str,
    *,
    namespace: str = "",
    without: Iterable[str] = (),
    replace: Mapping[str, ModuleSpec] | None = None,
    types: Mapping[str, type[Module] | str] | None = None,
    processes: Mapping[str, str | None] | None = None,
    remap: Mapping[str, str | None] | None = None,
    set: Mapping[str, Any] | None = None,
) -> Blueprint:
    """A blueprint, or what ``resolve`` finds for a reference, changed for use inside another one.

    The changes are made in this order: ``without`` leaves modules out, ``replace`` puts others in their place,
    ``types`` gives modules another class and leaves the rest as it is, ``processes`` gives them other process labels,
    ``remap`` (``{"follow.cmd_vel": "skill_vel"}``) gives streams other topics, ``set``
    (``{"follow.distance_m": 1.2}``, ``{"patrol.waypoints.0": …}``) gives settings other values, and ``namespace`` is
    put before all names. Modules are called as they are inside ``other``. Raises ``UserError`` for names and values
    that ``other`` can't have.
    """
    check_blueprint(other, "include(…)")
    check_replacements(replace or {})
    found = resolve(other) if isinstance(other, str) else other
    where = _caller()
    found = found.without(*without)
    for name, spec in (replace or {}).items():
        found = found.replaced(name, spec)
    classes = {name: _reference(cls) for name, cls in (types or {}).items()}
    found = found.retyped(classes, source=where).in_processes(processes or {}, source=where)
    changed = found.remap(remap or {}, source=where).configured(plain(set or {}), source=where)
    return changed.namespaced(namespace) if namespace else changed


def _reference(cls: type[Module] | str) -> str:
    check_class(cls)
    if isinstance(cls, str):
        return cls
    if "<locals>" in cls.__qualname__:
        raise UserError(f"{cls.__qualname__} can't be imported by another process: define it outside of functions")
    return f"{cls.__module__}:{cls.__qualname__}"


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.rpartition(".")[2]).lower()


def _caller() -> str:
    """``"file:line"`` of the code that called one of these functions."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"] in (__name__, with_checked_arguments.__module__):
        frame = frame.f_back
    return f"{display_path(Path(frame.f_code.co_filename))}:{frame.f_lineno}"
