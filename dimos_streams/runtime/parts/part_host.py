"""The host of a part, which tells the other parts of the run what it is, and knows which of them are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dimos_streams.bus import create_bus
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.runtime.neighbours import refuse_neighbours
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.parts.part import Part
from dimos_streams.runtime.parts.part_module import PartModule
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.parts import part_on

_LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class PartHost:
    """The part of this machine while its run lasts."""

    part: Part
    module: PartModule
    directory: ModuleDirectory

    def declare_ready(self) -> None:
        """Declare that all modules of this part are ready."""
        self.module.ready = True
        self.module.report()

    def trouble(self) -> dict[str, str]:
        """Return the machines of which this run can't be sure at the moment, and why."""
        return {machine: why for machine in self.part.others if (why := self._trouble_with(machine))}

    def contradictions(self) -> dict[str, str]:
        """Return the machines that run something else than this one, and what; waiting does not help."""
        return {machine: why for machine in self.part.others if (why := self._contradiction(machine))}

    def _trouble_with(self, machine: str) -> str:
        found = part_on(self.directory, machine)
        if found is None:
            return "has not been heard"
        if not found.alive:
            return f"has not been heard for {found.silent_s:.0f} s"
        return self._contradiction(machine) or ("" if found.state.ready else "is starting")

    def _contradiction(self, machine: str) -> str:
        found, own = part_on(self.directory, machine), self.part
        if found is None or not found.alive:
            return ""
        theirs = found.state
        if theirs.version != own.version:
            return f"runs dimos_streams {theirs.version}, this one {own.version}"
        if (theirs.blueprint, theirs.digest) != (own.blueprint, own.digest):
            return (
                f"runs another blueprint: {theirs.blueprint!r} ({theirs.digest}), this one"
                f" {own.blueprint!r} ({own.digest}); give both the same files"
            )
        return ""

    async def changes(self) -> AsyncIterator[dict[str, str]]:
        """Yield what ``trouble`` says, first now, then whenever it concerns other machines or has other reasons; have
        the part's health say it meanwhile. Never end."""
        before: dict[str, str] | None = None
        while True:
            now = self.trouble()
            self.module.health = "; ".join(f"machine {machine!r} {why}" for machine, why in now.items()) or "ok"
            if before is None or _kinds(now) != _kinds(before):
                yield now
                before = now
            await asyncio.sleep(_LOOK_EVERY_S)


@asynccontextmanager
async def host_part(part: Part, options: RunOptions, end: Callable[[], None]) -> AsyncIterator[PartHost]:
    """Speak for a part on a bus of its own while the context lasts; ``end`` begins to end it. Raises ``BusError``,
    and ``UserError`` if the part runs already: nobody is to hear two of it."""
    await refuse_neighbours(options.bus_url, part.own)
    bus = create_bus(options.bus_url)
    await bus.open()
    host = ModuleHost(bus)
    module = PartModule(part, end, options.run_dir)
    try:
        await host.start(module, module.topics)
        yield PartHost(part, module, host.directory)
    finally:
        await host.stop("this part of the run is stopping")
        await bus.close()


def _kinds(trouble: dict[str, str]) -> dict[str, str]:
    """Return the reasons without the durations that grow."""
    return {machine: why.partition(" for ")[0] for machine, why in trouble.items()}
