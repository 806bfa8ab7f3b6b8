"""The ports at which the modules of a run listen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from dimos_streams import clock
from dimos_streams.blueprint.classes import module_class, module_config, served_address
from dimos_streams.common.process.listening import KeptPort, why_not_listening
from dimos_streams.errors import UserError
from dimos_streams.runtime.plan import ProcessPlan

FREE_WITHIN_S = 1.0
"""Maximum wait, in seconds, for the port of a run that was killed: its processes end a moment after it."""
_CHOSEN_BY = "--port (the bridge's), --foxglove HOST:PORT (for viewers) or --set"


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

    async def take(self) -> None:
        """Keep all ports; to be called before anything of the run begins. Raises ``UserError`` for one that can't be
        listened at."""
        deadline = clock.monotonic() + FREE_WITHIN_S
        for module, port in self._ports.items():
            while why := _why_not_kept(port):
                if clock.monotonic() >= deadline:
                    raise UserError(f"module {module!r}: {why}")
                await asyncio.sleep(0.05)

    def close(self) -> None:
        """Let go of the ports. Twice is fine."""
        for port in self._ports.values():
            port.close()


def _why_not_kept(port: KeptPort) -> str:
    """Keep a port; return why it can't be, empty if it is."""
    try:
        port.take()
    except OSError as error:
        return why_not_listening(port.host, port.port, error, chosen_by=_CHOSEN_BY)
    return ""
