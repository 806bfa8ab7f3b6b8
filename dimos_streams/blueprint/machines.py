"""One blueprint on several machines: what each machine runs, and what crosses between them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.wiring import output_channels, ports_of
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import UserError, suggest


def machines_of(blueprint: Blueprint) -> tuple[str, ...]:
    """The machines that a blueprint names, in the order of their first modules; none if any one machine runs it."""
    return tuple(dict.fromkeys(spec.machine for spec in blueprint.modules.values() if spec.machine))


def part_of(blueprint: Blueprint, machine: str) -> Blueprint:
    """Return the part of a blueprint that one machine runs. Channels of the others are ``external`` to it: those that
    its modules take, or all of them if one of its modules shows all channels.

    Raises ``UserError`` for a machine that the blueprint does not name, and ``BlueprintError`` if a class can't be
    imported.
    """
    machines = machines_of(blueprint)
    if machine not in machines:
        known = f"(machines: {', '.join(machines)})" if machines else "(it names none: give modules a `machine:`)"
        raise UserError(
            f"blueprint {blueprint.name!r} has no machine {machine!r}{suggest(machine, machines)} {known}"
        )
    here = {name: spec for name, spec in blueprint.modules.items() if spec.machine == machine}
    elsewhere = {name: spec for name, spec in blueprint.modules.items() if name not in here}
    sent = _sent_elsewhere(blueprint, machine)
    taken = dict.fromkeys(channel for spec in here.values() for channel in _taken(spec))
    shows_all = any(module_class(spec).sees_channels for spec in here.values())
    crossing = list(sent) if shows_all else [channel for channel in taken if channel in sent]
    external = tuple(dict.fromkeys((*blueprint.external, *crossing)))
    return blueprint.model_copy(update={"modules": here, "external": external, "elsewhere": elsewhere})


def digest_of(blueprint: Blueprint) -> str:
    """Return a hash that tells a blueprint from others and from itself after a change; equal on all of its
    machines."""
    return hashlib.sha256(blueprint.model_dump_json().encode()).hexdigest()[:12]


def machine_problems(blueprint: Blueprint) -> Iterator[Problem]:
    """Yield modules that no machine would run."""
    machines = machines_of(blueprint)
    if not machines:
        return
    for name, spec in blueprint.modules.items():
        if spec.machine is None:
            text = f"module {name!r} is on no machine, so nothing would run it (machines: {', '.join(machines)})"
            yield Problem(text, spec.where("machine"))


def _sent_elsewhere(blueprint: Blueprint, machine: str) -> Mapping[str, None]:
    others = (spec for spec in blueprint.modules.values() if spec.machine != machine)
    return dict.fromkeys(channel for spec in others for channel in output_channels(spec, module_class(spec)))


def _taken(spec: ModuleSpec) -> Iterator[str]:
    for port in ports_of(spec, module_class(spec)):
        if port.stream.direction == "in" and port.topic:
            yield from port.channels
