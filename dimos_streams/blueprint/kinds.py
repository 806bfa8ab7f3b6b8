"""The kinds of modules that runs and replays treat specially, by the names of their classes. These are not imported,
because most blueprints have only a few of them. Whether others treat a module as an agent is not decided by its class
but declared by the module: see ``agents_of``."""

from __future__ import annotations

from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.documents.problem import BlueprintError

AGENT = "dimos_streams.agent.module:Agent"
BRIDGE = "dimos_streams.bridge.module:Bridge"
FOXGLOVE_SERVER = "dimos_streams.foxglove.module:FoxgloveServer"
RECORDER = "dimos_streams.recording.module:RecorderModule"


def is_of(spec: ModuleSpec, *kinds: str) -> bool:
    """Return whether a module's class is one of these, or based on one. Raises ``BlueprintError`` for a class that
    can't be imported."""
    return any(f"{base.__module__}:{base.__qualname__}" in kinds for base in module_class(spec).__mro__)


def is_replayable(spec: ModuleSpec) -> bool:
    """Return whether a module can be tested with a recording: what bridges and agents exchange is not on the bus."""
    return not is_of(spec, AGENT, BRIDGE, RECORDER)


def bridge_in(blueprint: Blueprint) -> str | None:
    """Return the name of the blueprint's (first) bridge, or None. A class that can't be imported is no bridge's."""

    def is_bridge(spec: ModuleSpec) -> bool:
        try:
            return is_of(spec, BRIDGE)
        except BlueprintError:
            return False

    return next((name for name, spec in blueprint.modules.items() if is_bridge(spec)), None)
