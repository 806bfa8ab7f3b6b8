"""The part of a blueprint that a run is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dimos_streams import __version__
from dimos_streams.blueprint.machines import digest_of, machines_of
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.stamps import stamping_machines
from dimos_streams.blueprint.wiring import agents_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of one machine, and what all parts of the blueprint have in common."""

    machine: str
    machines: tuple[str, ...]
    """The names of all machines of the blueprint."""
    blueprint: str
    digest: str
    """See ``digest_of``: another digest means another blueprint."""
    modules: tuple[str, ...]
    """The names of all modules, of all machines."""
    own: tuple[str, ...]
    """The names of the part's modules."""
    bridge_on: str
    """The machine that has the bridge; empty if there is none."""
    stamped_on: Mapping[str, str] = field(default_factory=dict)
    """See ``stamping_machines``."""
    agents: frozenset[str] = frozenset()
    """The names of all agents, of all machines."""
    version: str = __version__

    @classmethod
    def of(cls, whole: Blueprint, machine: str, bridge: str | None) -> Part:
        """Return the part that a machine runs of a blueprint as it was written: settings of one machine concern no
        other.

        ``bridge`` is the name of the module that is the bridge.
        """
        return cls(
            machine=machine,
            machines=machines_of(whole),
            blueprint=whole.name,
            digest=digest_of(whole),
            modules=tuple(whole.modules),
            own=tuple(name for name, spec in whole.modules.items() if spec.machine == machine),
            bridge_on=whole.modules[bridge].machine or "" if bridge is not None else "",
            stamped_on=stamping_machines(whole),
            agents=agents_of(whole),
        )

    @property
    def others(self) -> tuple[str, ...]:
        """The machines of the other parts."""
        return tuple(name for name in self.machines if name != self.machine)
