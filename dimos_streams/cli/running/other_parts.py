"""The parts of a run on other machines, for which the command on this one waits, and of which it tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from dimos_streams.errors import DimosStreamsError, UserError
from dimos_streams.runtime.parts.part_host import PartHost

_LOOK_EVERY_S = 1.0


class OtherParts:
    """The parts on other machines; it waits for them, and says which come and go."""

    def __init__(self, host: PartHost, wait_s: float) -> None:
        """``wait_s`` bounds the wait for all of them, in seconds."""
        self.host = host
        self._wait_s = wait_s

    async def wait(self) -> None:
        """Wait until all parts are ready. Raises ``DimosStreamsError``, which names those that are not ready within
        the bound, and at once ``UserError`` for one that runs something else."""
        trouble: Mapping[str, str] = {}
        try:
            async with asyncio.timeout(self._wait_s):
                async for trouble in self.host.changes():
                    if not trouble:
                        return
                    if contradictions := self.host.contradictions():
                        raise UserError(_listed(contradictions))
        except TimeoutError:
            raise DimosStreamsError(
                f"{_listed(trouble)} (waited {self._wait_s:g} s); {self._start(trouble)}"
            ) from None

    def states(self) -> dict[str, str]:
        """Return the problem with each of the others; empty for one that is ready."""
        return dict.fromkeys(self.host.part.others, "") | self.host.trouble()

    async def report(self, note: Callable[[str], None], changed: Callable[[], None]) -> None:
        """Say which parts are waited for, have come, or have gone; never end.

        ``changed`` is called then, and when more is known of their clocks.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_clocks(changed))
            await self._report(note, changed)

    async def _watch_clocks(self, changed: Callable[[], None]) -> None:
        before = self.host.module.clocks
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now = self.host.module.clocks
            if now != before:
                changed()
                before = now

    async def _report(self, note: Callable[[str], None], changed: Callable[[], None]) -> None:
        before: Mapping[str, str] = dict.fromkeys(self.host.part.others, "")
        async for trouble in self.host.changes():
            changed()
            for machine in before:
                if machine not in trouble:
                    note(f"machine {machine!r} is there")
            for machine, why in trouble.items():
                note(f"waiting: machine {machine!r} {why}")
            before = trouble

    def _start(self, machines: Mapping[str, str]) -> str:
        name = self.host.part.blueprint
        starts = ", ".join(f"`dimos-streams run {name} --machine {machine}`" for machine in machines)
        return (
            f"start it there: {starts}; one that runs is on another bus: `dimos-streams doctor --bus URL` looks at it"
        )


def _listed(trouble: Mapping[str, str]) -> str:
    return "; ".join(f"machine {machine!r} {why}" for machine, why in trouble.items())
