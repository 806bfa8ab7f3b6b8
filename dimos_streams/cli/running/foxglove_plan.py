"""The server that ``run --foxglove`` adds to a run, and the lines about it."""

from __future__ import annotations

from dimos_streams.blueprint.kinds import FOXGLOVE_SERVER, is_of
from dimos_streams.blueprint.machines import machines_of
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.cli.option_groups.foxglove_option import FOXGLOVE
from dimos_streams.errors import UserError
from dimos_streams.foxglove.address import DEFAULT_HOST, DEFAULT_PORT, LAYOUT, parsed_address, url_of

NAME = "foxglove"


def with_foxglove(blueprint: Blueprint, *, address: str | None, machine: str | None = None) -> Blueprint:
    """Return the blueprint with a server for Foxglove in a process of its own, if there is an address for it.

    Raises ``UserError`` for an invalid address, and if the blueprint has a module of that name.
    """
    if address is None:
        return blueprint
    host, port = parsed_address(address)
    if NAME in blueprint.modules:
        raise UserError(f"blueprint {blueprint.name!r} has a module {NAME!r} already; leave out {FOXGLOVE}")
    machines = machines_of(blueprint)
    if machine is not None and machine not in machines:
        return blueprint  # which is refused for that
    place = machine or next(iter(machines), None)
    spec = ModuleSpec(name=NAME, type=FOXGLOVE_SERVER, config={"host": host, "port": port}, machine=place)
    return blueprint.model_copy(update={"modules": {**blueprint.modules, NAME: spec}})


def foxglove_lines(blueprint: Blueprint) -> list[str]:
    """Return the lines that say where viewers connect, and with which layout; none if no module serves them."""
    servers = [spec for spec in blueprint.modules.values() if is_of(spec, FOXGLOVE_SERVER)]
    urls = [url_of(str(spec.config.get("host", DEFAULT_HOST)), _port_of(spec)) for spec in servers]
    return [*(f"foxglove {url}" for url in urls), *([f"foxglove layout {LAYOUT}"] if urls else [])]


def _port_of(spec: ModuleSpec) -> int:
    port = spec.config.get("port", DEFAULT_PORT)
    return port if isinstance(port, int) else DEFAULT_PORT
