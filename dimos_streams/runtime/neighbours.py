"""The check that a run's modules do not run already: they are distinguished by their names, and a bus has one of
each."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Collection, Iterable

from dimos_streams import clock
from dimos_streams.bus import Bus, create_bus
from dimos_streams.bus.url import leaves_process
from dimos_streams.errors import UserError
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.instances import Instance
from dimos_streams.tool_stream.liveness.module_view import ModuleView

NAME_PROBE_S = 0.4
"""The time to listen, in seconds: longer than the pause between two heartbeats. Modules that are there are asked,
too."""
_SILENT_S = 0.6
"""The silence, in seconds, after which a module has gone."""
LEAVES_WITHIN_S = 2.5
"""Maximum wait, in seconds, for a run that is just ending."""
_TOGETHER_S = 3.0
"""The time, in seconds, by which runs that were started at the same time have found each other."""


async def modules_on(bus: Bus) -> list[ModuleView]:
    """Return the modules that run on a bus, which is open; listening takes ``NAME_PROBE_S``."""
    directory = ModuleDirectory(bus)
    directory.start()
    try:
        await asyncio.sleep(NAME_PROBE_S)
        return [view for view in directory.modules() if view.alive]
    finally:
        directory.stop()


async def refuse_neighbours(bus_url: str, names: Collection[str]) -> None:
    """Raise ``UserError`` if a module of one of these names runs already on a bus that leaves the process."""
    if not leaves_process(bus_url):
        return
    neighbours = Neighbours(create_bus(bus_url), names)
    try:
        await neighbours.open()
        await neighbours.refuse()
    finally:
        await neighbours.close()


class Neighbours:
    """A listener on a bus, which it opens and closes, for modules of the same names as a run's own."""

    def __init__(self, bus: Bus, names: Collection[str]) -> None:
        self._bus = bus
        self._names = names
        self._directory = ModuleDirectory(bus)
        self._began = 0.0

    async def open(self) -> None:
        """Begin to listen, and ask who is there. Raises ``BusError``."""
        await self._bus.open()
        self._began = clock.monotonic()
        self._directory.start()

    async def close(self) -> None:
        """Listen no more. Closing twice is fine."""
        self._directory.stop()
        await self._bus.close()

    async def refuse(self) -> None:
        """Raise ``UserError`` if a module of the run runs already; to be called before anything of the run begins."""
        await asyncio.sleep(max(0.05, self._began + NAME_PROBE_S - clock.monotonic()))  # what has come is read first
        deadline = self._began + LEAVES_WITHIN_S
        while present := [view for view in self._views() if view.age_s <= _SILENT_S]:
            if clock.monotonic() >= deadline:
                raise UserError(self._refusal({view.name: view.current for view in present}))
            await asyncio.sleep(0.05)

    async def meet(self, own_pids: Callable[[], Iterable[int | None]]) -> str:
        """Return why the run, whose modules have all begun, must end: an elder one began meanwhile. Empty if none
        did."""
        end, host = clock.monotonic() + _TOGETHER_S, os.uname().nodename
        younger_since = math.inf
        own = set(own_pids())
        ours: set[tuple[str, Instance]] = set()
        while True:
            await asyncio.sleep(0.1)
            now = clock.monotonic()
            own |= set(own_pids())  # what was restarted meanwhile is heard for a moment longer
            # One that falls silent on a busy machine has begun all the same; without it both runs might end.
            ours.update(each for each in self._begun() if each[1].host == host and each[1].pid in own)
            elders = self._elders({each for _, each in ours})
            younger_since = min(younger_since, now) if elders else math.inf
            # The eldest of ours may be one that was not heard yet.
            is_known = {name for name, _ in ours}.issuperset(self._names) or now >= end
            if is_known and now - younger_since >= NAME_PROBE_S:  # by now all that have begun were heard
                return self._refusal(elders)
            if now >= end:
                return ""

    def _elders(self, ours: Collection[Instance]) -> dict[str, Instance]:
        """Return the modules that others run under our names, if one of those began before all of ours; else nothing.

        Runs agree on that only if they look at the same modules: at all that have begun, with a rival or not yet.
        """
        others = {name: each for name, each in reversed(self._begun()) if each not in ours}
        return others if ours and others and min(others.values()) < min(ours) else {}

    def _begun(self) -> list[tuple[str, Instance]]:
        """All modules of our names that are heard, whoever's they are."""
        alive = [view for view in self._views() if view.age_s <= _SILENT_S]
        return [(view.name, each) for view in alive for each in view.rivals or (view.current,)]

    def _views(self) -> list[ModuleView]:
        views = (self._directory.module(name) for name in self._names)
        return [view for view in views if view is not None]

    def _refusal(self, present: dict[str, Instance]) -> str:
        name, instance = min(present.items(), key=lambda item: item[0])
        more = f" (and {len(present) - 1} more of this blueprint)" if len(present) > 1 else ""
        return (
            f"module {name!r} runs already on {self._bus.url}{more}: {instance}; end that run (`dimos-streams stop`),"
            " or give this one another --bus or namespace"
        )
