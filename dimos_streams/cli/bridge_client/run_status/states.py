"""The states of runs, from what they have written down, the system, and their bridges."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.cli.bridge_client.answers import HEALTH, MODULES, Health, ModuleAnswer
from dimos_streams.cli.bridge_client.connection import BridgeUnreachableError, bridge_of_run
from dimos_streams.cli.bridge_client.run_status.state import (
    AnsweringBridge,
    EventCounts,
    MachineState,
    ModuleState,
    NoBridge,
    ProcessState,
    RunState,
    UnreachableBridge,
)
from dimos_streams.common.process.disk import trouble_with
from dimos_streams.common.process.run_owner import is_suspended, process_start, usage_of
from dimos_streams.runtime.registry import ProcessRecord, RunRecord, lives, read_record
from dimos_streams.tool_stream.liveness.part_state import part_name, part_state

_LOOKS, _LOOK_S = 3, 0.06
"""The number of looks at a record of which a process has ended, and the time between them in seconds: a run that is
not held up, and whose disk is not full, has noted the end by then."""


async def states_of(records: Iterable[RunRecord]) -> list[RunState]:
    """Return the state of each run."""
    return list(await asyncio.gather(*(_state(record) for record in records)))


async def _state(record: RunRecord) -> RunState:
    """Return the state of a run."""
    record = await _noted(record)
    bridge, modules = await _bridge(record)
    known = {module.name: module for module in modules}
    return RunState(
        run_id=record.run_id,
        blueprint=record.blueprint,
        pid=record.pid,
        supervisor="suspended" if is_suspended(record.pid) else "ready",
        up_s=_up_s(record),
        bus=record.bus_url,
        machine=record.machine or None,
        machines=tuple(
            MachineState(
                name=name,
                problem=problem,
                clock=record.clocks.get(name),
                modules=tuple(_module(each, known) for each in _modules_on(name, known)),
            )
            for name, problem in record.others.items()
        ),
        run_dir=str(record.run_dir),
        disk=trouble_with(record.run_dir) or "ok",
        bridge=bridge,
        processes=tuple(with_usage(process_state(process, known)) for process in record.processes),
        modules=tuple(_module(name, known) for name in record.modules),
    )


async def _noted(record: RunRecord) -> RunRecord:
    """Return a run's record with the ends of its processes that it is just noting, as those of a stop."""
    for _ in range(_LOOKS):
        if all(process.pid is None or lives(process.pid, process.pid_started) for process in record.processes):
            break
        await asyncio.sleep(_LOOK_S)
        with contextlib.suppress(OSError, ValidationError):  # it has ended
            record = read_record(record.run_dir)
    return record


def _up_s(record: RunRecord) -> float:
    """Return for how long a run has lived, in seconds: since its process began, as the machine's clock may have been
    set meanwhile."""
    return max(0.0, round(clock.steady() - record.pid_started / os.sysconf("SC_CLK_TCK"), 1))


async def _bridge(record: RunRecord) -> tuple[AnsweringBridge | UnreachableBridge | NoBridge, list[ModuleAnswer]]:
    """Return the state of a run's bridge, and the modules that it knows of."""
    if (address := bridge_of_run(record)) is None:
        return NoBridge(), []
    try:
        health, modules = await asyncio.gather(address.get("/healthz", HEALTH), address.get("/modules", MODULES))
    except BridgeUnreachableError as error:
        return UnreachableBridge(url=address.url, problem=str(error)), []
    return _answering(address.url, health), modules


def _answering(url: str, health: Health) -> AnsweringBridge:
    counts = health.counts
    return AnsweringBridge(
        url=url,
        status=health.status,
        open_calls=counts.open_calls,
        lost=health.lost,
        stopped=health.stopped,
        not_ending=health.not_ending,
        hub=health.hub,
        counts=EventCounts(
            offset=health.offset, leases=counts.leases, broadcast=counts.broadcast, receiver=counts.receiver
        ),
    )


def process_state(process: ProcessRecord, modules: Mapping[str, ModuleAnswer]) -> ProcessRecord:
    """Return the state of a process by what the system knows of it: a run's record can't be renewed while the disk is
    full."""
    if process.pid is None or lives(process.pid, process.pid_started):
        return process
    pids = {modules[name].pid for name in process.modules if name in modules and modules[name].alive} - {process.pid}
    if len(pids) == 1 and (started := process_start(pid := pids.pop())) is not None:
        return replace(process, pid=pid, pid_started=started, state="ready")  # its modules speak from another one
    return replace(process, pid=None, pid_started=None, state="dead")


def with_usage(process: ProcessRecord) -> ProcessState:
    """Return the state of a process with what it has taken of the machine, by what the system says."""
    usage = None if process.pid is None else usage_of(process.pid)
    return ProcessState(
        **{each.name: getattr(process, each.name) for each in fields(process)},
        cpu_s=None if usage is None else round(usage.cpu_s, 2),
        memory_bytes=None if usage is None else usage.memory_bytes,
    )


def _modules_on(machine: str, known: Mapping[str, ModuleAnswer]) -> tuple[str, ...]:
    """Return the modules of another machine's part, as far as the bridge has heard of them."""
    part = known.get(part_name(machine))
    said = part_state(part) if part is not None else None
    return () if said is None else said.modules


def _module(name: str, known: Mapping[str, ModuleAnswer]) -> ModuleState:
    if (view := known.get(name)) is None:
        return ModuleState(name=name)
    return ModuleState(name=name, health=view.health, alive=view.alive, state=view.state)
