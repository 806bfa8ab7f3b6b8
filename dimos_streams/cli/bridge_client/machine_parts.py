"""The parts of a run on several machines, which commands on any of them reach through the bridge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dimos_streams import clock
from dimos_streams.cli.bridge_client.answers import MODULES
from dimos_streams.cli.bridge_client.connection import (
    BridgeAddress,
    BridgeUnreachableError,
    living_runs,
    open_gateway,
)
from dimos_streams.cli.terminal.named_runs import newest_of, refuse_several
from dimos_streams.errors import DimosStreamsError, SkillError, UserError, suggest
from dimos_streams.operator.known_names import CLI
from dimos_streams.runtime.registry import STOP_BOUND_S
from dimos_streams.tool_stream.liveness.part_state import PART, absent_machines

if TYPE_CHECKING:
    from dimos_streams.runtime.registry import RunRecord

_ANSWERS_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.2
_END = f"/{PART}"


async def machines_at(address: BridgeAddress) -> dict[str, bool]:
    """Return the machines whose parts a bridge has heard, and whether it hears them now. Raises
    ``BridgeUnreachableError``."""
    modules = await address.get("/modules", MODULES)
    return {each.name.removesuffix(_END): each.alive for each in modules if each.name.endswith(_END)}


async def absent_at(address: BridgeAddress) -> list[str]:
    """Return the machines of a bridge's run that are not there, or not ready; none if the bridge does not answer."""
    try:
        modules = await address.get("/modules", MODULES)
    except BridgeUnreachableError:
        return []
    return absent_machines(modules)


async def ask_part(address: BridgeAddress, machine: str, skill: str, arguments: Mapping[str, Any]) -> Any:
    """Return the result of a skill of a machine's part.

    Raises ``UserError`` for a machine that the bridge has not heard, ``DimosStreamsError`` for one that does not
    answer or refuses.
    """
    machines = await machines_at(address)
    if machine not in machines:
        known = ", ".join(machines) or "none: the run is not one of several machines"
        raise UserError(f"no machine {machine!r} is known at {address.url}{suggest(machine, machines)} ({known})")
    if not machines[machine]:
        raise DimosStreamsError(
            f"machine {machine!r} is not heard by the bridge at {address.url}: try again, or there"
        )
    public = f"{machine.replace('/', '_')}_{skill}"
    try:
        async with open_gateway(address) as gateway:
            close = await gateway.call_to_close(public, arguments, caller=CLI, wait_s=_ANSWERS_WITHIN_S)
    except SkillError as error:
        raise DimosStreamsError(f"machine {machine!r}: {error}") from error
    if close.outcome != "completed":
        raise DimosStreamsError(f"machine {machine!r}: {close.text or 'it has not answered'}")
    return close.result


async def stop_part(address: BridgeAddress, machine: str) -> None:
    """End a machine's part and wait until it has gone. Raises as ``ask_part`` does, and ``DimosStreamsError`` for one
    that goes on."""
    await ask_part(address, machine, "stop_part", {})
    deadline = clock.monotonic() + STOP_BOUND_S
    while clock.monotonic() < deadline:
        await asyncio.sleep(_LOOK_EVERY_S)
        try:
            if not (await machines_at(address)).get(machine):
                return
        except BridgeUnreachableError:  # it was in that part
            return
    raise DimosStreamsError(f"the part on {machine!r} did not end within {STOP_BOUND_S:g} s; stop it there")


def part_here(machine: str, selector: str | None, *, alone: bool = False) -> RunRecord | None:
    """Return the part of a run that runs here, by the name that its blueprint has for this machine, or None if that
    is another machine's. ``selector`` names the run; without it any is meant, the newest first. Raises as
    ``find_run`` does for a run that there is not, or that is not ``alone``."""
    from dimos_streams.runtime.registry import runs

    named = runs() if selector is None else living_runs(selector)
    own = [run for run in named if run.machine == machine]
    if alone and selector is not None:
        refuse_several(own, selector)
    return newest_of(own, selector) if own else None
