"""The parts of a run on other machines, as the command on this one waits for them and tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from dimos_streams.errors import DimosStreamsError, UserError
from dimos_streams.runtime.parts.part_host import PartHost


class OtherParts:
    """Waits for the parts on other machines, and says who comes and goes."""

    def __init__(self, host: PartHost, wait_s: float) -> None:
        """``wait_s`` bounds the waiting for all of them."""
        self.host = host
        self._wait_s = wait_s

    async def wait(self) -> None:
        """Wait until all parts are ready. Raises ``DimosStreamsError`` that names those that are not within the
        bound, and ``UserError`` at once for one that runs something else."""
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

    async def tell(self, note: Callable[[str], None]) -> None:
        """Say whom is waited for, who has come, and who has gone. Does not end."""
        before: Mapping[str, str] = {}
        async for trouble in self.host.changes():
            for machine in before:
                if machine not in trouble:
                    note(f"machine {machine!r} is there")
            for machine, why in trouble.items():
                note(f"waiting: machine {machine!r} {why}")
            before = trouble

    def _start(self, machines: Mapping[str, str]) -> str:
        name = self.host.part.blueprint
        return "start it there: " + ", ".join(
            f"`dimos-streams run {name} --machine {machine}`" for machine in machines
        )


def _listed(trouble: Mapping[str, str]) -> str:
    return "; ".join(f"machine {machine!r} {why}" for machine, why in trouble.items())
