"""The restart of a module of a living run, until calls reach the new one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dimos_streams import clock
from dimos_streams.cli.bridge_client.answers import MODULES
from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError, bridge_of_run
from dimos_streams.common.process.run_owner import is_suspended
from dimos_streams.errors import DimosStreamsError
from dimos_streams.runtime.live.control import ControlReply, Order, ask

if TYPE_CHECKING:
    from dimos_streams.runtime.registry import RunRecord

_HEARD_WITHIN_S = 5.0
_LOOK_S = 0.05


async def restart_module(record: RunRecord, module: str) -> ControlReply:
    """Restart a module, and those that share its process. Raises as ``ask`` does.

    The run answers when they are ready; the bridge takes them for the old ones until it has heard the new ones.
    """
    if is_suspended(record.pid):
        raise DimosStreamsError(
            f"run {record.run_id} is SUSPENDED and restarts nothing: `kill -CONT {record.pid}` lets it go on"
        )
    address = bridge_of_run(record)
    before = await _processes(address)
    answer = await ask(record.run_dir, Order(command="restart", module=module))
    deadline = clock.monotonic() + _HEARD_WITHIN_S
    while clock.monotonic() < deadline:
        if not _unchanged(answer.modules, before, await _processes(address)):
            break
        await asyncio.sleep(_LOOK_S)
    return answer


def _unchanged(modules: Iterable[str], before: dict[str, int], now: dict[str, int]) -> bool:
    return any(now.get(module) == before[module] for module in modules if module in before)


async def _processes(address: BridgeAddress | None) -> dict[str, int]:
    """Return the process id of each module that the bridge hears; none if no bridge answers, as it may be what is
    restarted."""
    if address is None:
        return {}
    try:
        modules = await address.get("/modules", MODULES)
    except BridgeUnreachableError:
        return {}
    return {module.name: module.pid for module in modules}
