"""The state of a run, from what it has written down, the system, and its bridge; for JSON."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dimos_streams.cli.bridge_client.answers import HEALTH, MODULES
from dimos_streams.cli.bridge_client.connection import BridgeUnreachableError, bridge_of_run

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.answers import ModuleAnswer
    from dimos_streams.runtime.registry import RunRecord


async def states_of(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """Return the state of each run."""
    return list(await asyncio.gather(*(_state(record) for record in records)))


async def _state(record: RunRecord) -> dict[str, Any]:
    """Return the state of a run."""
    from dimos_streams.common.process.disk import trouble_with
    from dimos_streams.common.process.run_owner import is_suspended

    bridge, modules = await _bridge(record)
    known = {module.name: module for module in modules}
    return {
        "run_id": record.run_id,
        "blueprint": record.blueprint,
        "pid": record.pid,
        "supervisor": "suspended" if is_suspended(record.pid) else "ready",
        "up_s": _up_s(record),
        "bus": record.bus_url,
        "machine": record.machine or None,
        "machines": [
            {
                "name": name,
                "problem": problem,
                "clock": record.clocks[name].model_dump() if name in record.clocks else None,
                "modules": [_module(each, known.get(each)) for each in _modules_on(name, known)],
            }
            for name, problem in record.others.items()
        ],
        "run_dir": str(record.run_dir),
        "disk": trouble_with(record.run_dir) or "ok",
        "bridge": bridge,
        "processes": [process_state(process, known) for process in record.processes],
        "modules": [_module(name, known.get(name)) for name in modules_of(record)],
    }


def _up_s(record: RunRecord) -> float:
    """Return for how long a run has lived, in seconds: since its process began, as the machine's clock may have been
    set meanwhile."""
    from dimos_streams import clock

    return max(0.0, round(clock.steady() - record.pid_started / os.sysconf("SC_CLK_TCK"), 1))


async def _bridge(record: RunRecord) -> tuple[dict[str, Any], list[ModuleAnswer]]:
    """Return the state of a run's bridge, and the modules that it knows of."""
    if (address := bridge_of_run(record)) is None:
        return {"url": None, "status": "none"}, []
    try:
        health, modules = await asyncio.gather(address.get("/healthz", HEALTH), address.get("/modules", MODULES))
    except BridgeUnreachableError as error:
        return {"url": address.url, "status": "unreachable", "problem": str(error)}, []
    bridge = {
        "url": address.url,
        "status": health.status,
        "open_calls": health.counts.open_calls,
        "lost": list(health.lost),
        "stopped": health.stopped.model_dump(mode="json"),
        "not_ending": [call.model_dump(mode="json") for call in health.not_ending],
        "hub": None if health.hub is None else {**health.hub.model_dump(mode="json"), "text": str(health.hub)},
        "counts": {
            "offset": health.offset,
            **health.counts.model_dump(include={"receiver", "broadcast", "leases"}),
        },
    }
    return bridge, modules


def process_state(process: dict[str, object], modules: dict[str, ModuleAnswer]) -> dict[str, object]:
    """Return the state of a process by what the system knows of it: a run's record can't be renewed while the disk is
    full."""
    from dimos_streams.common.process.run_owner import process_start
    from dimos_streams.runtime.registry import lives

    if process["pid"] is None or lives(process["pid"], process.get("pid_started")):
        return process
    listed = process["modules"]
    assert isinstance(listed, list | tuple)
    pids = {modules[name].pid for name in listed if name in modules and modules[name].alive} - {process["pid"]}
    if len(pids) == 1 and (started := process_start(pid := pids.pop())) is not None:
        return {**process, "pid": pid, "pid_started": started, "state": "ready"}  # its modules speak from another one
    return {**process, "pid": None, "pid_started": None, "state": "dead"}


def _modules_on(machine: str, known: dict[str, ModuleAnswer]) -> list[str]:
    """Return the modules of another machine's part, as far as the bridge has heard of them."""
    from dimos_streams.tool_stream.liveness.part_state import PART

    part = known.get(f"{machine}/{PART}")
    listed = part.state.get(PART, {}).get("modules", ()) if part is not None else ()
    return [str(name) for name in listed]


def modules_of(record: RunRecord) -> list[str]:
    """Return the names of a run's modules on this machine, process by process."""
    names: list[str] = []
    for process in record.processes:
        listed = process["modules"]
        assert isinstance(listed, list | tuple)
        names += map(str, listed)
    return names


def _module(name: str, view: ModuleAnswer | None) -> dict[str, Any]:
    if view is None:
        return {"name": name, "health": "unknown", "alive": None, "state": {}}
    return {"name": name, "health": view.health, "alive": view.alive, "state": view.state}
