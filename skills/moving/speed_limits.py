"""The velocity gate's limits as a bound of live settings: no skill is told to drive faster than the robot may."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

from dimos_streams.common.names import namespace_of
from dimos_streams.errors import SettingsError
from dimos_streams.module import Module
from dimos_streams.operator.holding import GATE, VelocityGateState, gate_state
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory

_TURNS = ("max_turn", "search_turn")


def check_against_gate(module: Module, changed: Iterable[str]) -> None:
    """Compare changed settings of a module with what the velocity gates of its robot let pass now.

    Raises ``SettingsError``. A gate that has not been heard says nothing; it limits what passes all the same.
    """
    problems: dict[str, str] = {}
    for name, gate in _gates(module):
        for path in changed:
            setting, value = path.rpartition(".")[2], operator.attrgetter(path)(module.config)
            limit = gate.max_speed if setting == "max_speed" else gate.max_turn if setting in _TURNS else None
            if limit is not None and value > limit:
                unit = "m/s" if setting == "max_speed" else "rad/s"
                problems[path] = f"{value:g} {unit} is more than velocity gate {name!r} lets pass, {limit:g} {unit}"
    if problems:
        raise SettingsError(problems)


def _gates(module: Module) -> Iterator[tuple[str, VelocityGateState]]:
    """The living velocity gates of a module's robot."""
    directory = module.context.services.get(ModuleDirectory)
    for view in directory.reporting(GATE) if directory is not None else ():
        gate = gate_state(view.state)
        if gate is not None and view.alive and namespace_of(view.name) == namespace_of(module.name):
            yield view.name, gate
