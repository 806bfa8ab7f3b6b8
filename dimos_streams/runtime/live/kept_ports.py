"""The ports at which the modules of a run listen."""

from __future__ import annotations

from collections.abc import Iterable

from dimos_streams.blueprint.classes import module_class, module_config, served_address
from dimos_streams.common.process.listening import KeptPort
from dimos_streams.runtime.plan import ProcessPlan


class KeptPorts:
    """The ports of a run, which nobody else gets while one of its modules is restarted."""

    def __init__(self, plans: Iterable[ProcessPlan]) -> None:
        self._ports: dict[str, KeptPort] = {}
        for plan in plans:
            for spec in (module.spec for module in plan.modules):
                cls = module_class(spec)
                address = served_address(cls, module_config(spec, cls))
                if address is not None:
                    self._ports[spec.name] = KeptPort(*address)

    @property
    def modules(self) -> frozenset[str]:
        """The names of the modules whose ports are kept."""
        return frozenset(name for name, port in self._ports.items() if port.is_kept)

    def take(self) -> None:
        """Keep those of the ports that are free."""
        for port in self._ports.values():
            port.take()

    def close(self) -> None:
        """Let go of the ports. Twice is fine."""
        for port in self._ports.values():
            port.close()
