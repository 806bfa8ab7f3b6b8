"""Runs of this machine: status, stop, logs."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dimos_streams.cli.system.clock_text import clock_text
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, plural, write, write_json, write_table
from dimos_streams.errors import DimosStreamsError, UserError

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.answers import Module
    from dimos_streams.runtime.registry import RunRecord

_STOP_BOUND_S = 15.0
_Machine = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="The part of a run on another machine, reached through the bridge.",
        show_default=False,
    ),
]


def status(
    as_json: options.Json = False,
    ready: Annotated[
        bool,
        typer.Option(
            "--ready", help="Exit with 1 unless a run lives and all of each is ready: processes, modules, bridge."
        ),
    ] = False,
) -> None:
    """Show the living runs: processes, modules' health, the bridge."""
    from dimos_streams.cli.bridge_client.readiness import unready
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.runtime.registry import runs

    states = run_async(_all_states(runs()))
    if states or not ready:
        _write_states(states, as_json=as_json)
    if ready and (missing := unready(states)):
        raise DimosStreamsError(f"not ready: {'; '.join(missing)}")


def _write_states(states: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        write_json(states, indent=2)
    elif not states:
        note("no run lives; `dimos-streams run BLUEPRINT` starts one")
    for number, state in enumerate([] if as_json else states):
        if number:
            write("")
        _write_state(state)


def stop(
    selector: options.Run = None,
    machine: _Machine = None,
    everywhere: Annotated[
        bool,
        typer.Option("--everywhere", help="First the parts of the run on all other machines, through the bridge."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Stop a run, and wait until all its processes have gone; of one on several machines, the part on this one."""
    from dimos_streams.cli.bridge_client.connection import find_bridge, find_run
    from dimos_streams.cli.bridge_client.machine_parts import stop_part
    from dimos_streams.cli.system.async_runner import run_async

    if machine is not None and everywhere:
        raise UserError("--machine names one part and --everywhere means all; give one of them")
    if machine is not None and machine not in _own_machines():
        address = find_bridge(None, None, os.environ.get("DIMOS_STREAMS_TOKEN"))
        run_async(stop_part(address, machine))
        _say_stopped({"machine": machine}, f"the part on {machine} has stopped", as_json=as_json)
        return
    run = find_run(machine or selector)
    problems = _stop_others(run, as_json=as_json) if everywhere else []
    _stop_here(run, as_json=as_json)  # whatever became of the others: this one can be reached
    if problems:
        raise DimosStreamsError(f"of the other parts, not all have stopped: {'; '.join(problems)}")


def _stop_others(run: RunRecord, *, as_json: bool) -> list[str]:
    """End the parts of a run on other machines; which could not be, and why."""
    from dimos_streams.cli.bridge_client.connection import find_bridge_of
    from dimos_streams.cli.bridge_client.machine_parts import machines_at, stop_part
    from dimos_streams.cli.system.async_runner import run_async

    problems: list[str] = []
    try:
        address = find_bridge_of(run.run_id, None, None, os.environ.get("DIMOS_STREAMS_TOKEN"))
        others = [name for name, alive in run_async(machines_at(address)).items() if alive and name != run.machine]
    except DimosStreamsError as error:
        return [str(error)]
    for name in sorted(others, key=lambda name: name == run.bridge_on):
        try:
            run_async(stop_part(address, name))
        except DimosStreamsError as error:
            problems.append(str(error))
        else:
            _say_stopped({"machine": name}, f"the part on {name} has stopped", as_json=as_json)
    return problems


def _own_machines() -> list[str]:
    """Whose parts run on this machine."""
    from dimos_streams.runtime.registry import runs

    return [run.machine for run in runs() if run.machine]


def _say_stopped(what: dict[str, str], text: str, *, as_json: bool) -> None:
    if as_json:
        write_json({**what, "stopped": True}, indent=2)
    else:
        write(text)


def _stop_here(run: RunRecord, *, as_json: bool) -> None:
    from dimos_streams.runtime.registry import lives

    known = [(run.pid, run.pid_started), *((process["pid"], process.get("pid_started")) for process in run.processes)]
    pids = [pid for pid, started in known if isinstance(pid, int) and lives(pid, started)]
    watched = {pid: fd for pid in dict.fromkeys(pids) if (fd := _pidfd(pid)) is not None}
    try:
        _signal(run)
        left = _wait_for_end(watched)
    finally:
        for fd in watched.values():
            os.close(fd)
    if left:
        numbers = " ".join(map(str, left))
        raise DimosStreamsError(f"{run.run_id} did not end within {_STOP_BOUND_S:g} s; `kill -9 {numbers}` ends it")
    _say_stopped({"run_id": run.run_id, "blueprint": run.blueprint}, f"{run.run_id} has stopped", as_json=as_json)


def logs(
    selector: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run's id or blueprint, also of one that has ended. Without it: the newest.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines until the run ends.")] = False,
    process: Annotated[
        str | None, typer.Option("--process", metavar="NAME", help="Only this process's log.", show_default=False)
    ] = None,
    machine: _Machine = None,
    as_json: options.JsonLines = False,
) -> None:
    """Show what the processes of a run have logged; of the part on another machine its newest lines."""
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.cli.terminal.log_files import RunLogs, find_run_dir

    if machine is not None and machine not in _own_machines():
        run_async(_write_logs_of(machine, process, follow=follow, as_json=as_json))
        return
    selector = machine or selector
    run_dir = find_run_dir(selector)
    run_logs = RunLogs(run_dir, process, as_json=as_json)
    if run_logs.empty:
        note(f"there are no logs in {run_dir / 'logs'}")
    run_logs.write_new()
    if follow:
        run_async(run_logs.follow())


async def _write_logs_of(machine: str, process: str | None, *, follow: bool, as_json: bool) -> None:
    from dimos_streams.cli.bridge_client.connection import find_bridge
    from dimos_streams.cli.bridge_client.machine_logs import MachineLogs

    logs = MachineLogs(find_bridge(None, None, os.environ.get("DIMOS_STREAMS_TOKEN")), machine, process)
    async for lines in logs.lines(follow=follow):
        for line in lines:
            if as_json:
                write_json(line.to_dict())
            else:
                write(line.raw if process is not None else f"{line.process}  {line.raw}")


async def _all_states(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    return list(await asyncio.gather(*(_state(record) for record in records)))


async def _bridge(record: RunRecord) -> tuple[dict[str, Any], list[Module]]:
    """A run's bridge as it stands, and the modules that it knows of."""
    from dimos_streams.cli.bridge_client.answers import HEALTH, MODULES
    from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError

    if record.bridge_url is None:
        return {"url": None, "status": "none"}, []
    address = BridgeAddress(record.bridge_url, record.token)
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
            **health.counts.model_dump(include={"receiver", "hub", "leases"}),
        },
    }
    return bridge, modules


async def _state(record: RunRecord) -> dict[str, Any]:
    """A run as it stands, for JSON."""
    from dimos_streams import clock
    from dimos_streams.common.disk import trouble_with

    bridge, modules = await _bridge(record)
    known = {module.name: module for module in modules}
    return {
        "run_id": record.run_id,
        "blueprint": record.blueprint,
        "pid": record.pid,
        "up_s": round((clock.utime() - record.started_utime) / 1e6, 1),
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
        "processes": [_process(process, known) for process in record.processes],
        "modules": [_module(name, known.get(name)) for name in _modules_of(record)],
    }


def _process(process: dict[str, object], modules: dict[str, Module]) -> dict[str, object]:
    """A process by what the system knows of it: what is noted can't be renewed while the disk is full."""
    from dimos_streams.common.run_owner import process_start
    from dimos_streams.runtime.registry import lives

    if process["pid"] is None or lives(process["pid"], process.get("pid_started")):
        return process
    listed = process["modules"]
    assert isinstance(listed, list | tuple)
    pids = {modules[name].pid for name in listed if name in modules and modules[name].alive} - {process["pid"]}
    if len(pids) == 1 and (started := process_start(pid := pids.pop())) is not None:
        return {**process, "pid": pid, "pid_started": started, "state": "ready"}  # its modules speak from another one
    return {**process, "pid": None, "pid_started": None, "state": "dead"}


def _modules_on(machine: str, known: dict[str, Module]) -> list[str]:
    """The modules of another machine's part, as far as the bridge has heard of them."""
    from dimos_streams.tool_stream.liveness.part_state import PART

    part = known.get(f"{machine}/{PART}")
    listed = part.state.get(PART, {}).get("modules", ()) if part is not None else ()
    return [str(name) for name in listed]


def _modules_of(record: RunRecord) -> list[str]:
    names: list[str] = []
    for process in record.processes:
        listed = process["modules"]
        assert isinstance(listed, list | tuple)
        names += map(str, listed)
    return names


def _module(name: str, view: Module | None) -> dict[str, Any]:
    if view is None:
        return {"name": name, "health": "unknown", "alive": None, "state": {}}
    return {"name": name, "health": view.health, "alive": view.alive, "state": view.state}


def _write_state(state: dict[str, Any]) -> None:
    bridge = state["bridge"]
    calls = f", {plural(bridge['open_calls'], 'open call')}" if "open_calls" in bridge else ""
    write(f"{state['run_id']}  up {_duration(state['up_s'])}  pid {state['pid']}")
    write(f"  bridge  {bridge['url']} {bridge['status']}{calls}" if bridge["url"] else "  bridge  none in this run")
    if problem := bridge.get("problem"):
        write(f"          {problem}")
    if "counts" in bridge:
        write(f"  events  {_counts(bridge['counts'])}")
    if hub := bridge.get("hub"):
        write(f"  hub     {hub['text']}")
    write(f"  bus     {state['bus']}")
    if state["machine"]:
        write(f"  machine {state['machine']}")
    for machine in state["machines"]:
        write(f"  beside  {machine['name']} ({machine['problem'] or 'ready'}){_clock(machine['clock'])}")
        if machine["modules"]:
            write(f"          {', '.join(map(_health, machine['modules']))}")
    full = "" if state["disk"] == "ok" else f"  ({state['disk']}: logs, mission records and pictures are lost)"
    write(f"  files   {state['run_dir']}{full}")
    if lost := bridge.get("lost"):
        write(f"  lost    {', '.join(lost)}")
    for line in (*_warnings(bridge), *_said_by(state["modules"])):
        write(f"  {line}")
    health = {module["name"]: module for module in state["modules"]}
    rows = [
        (f"  {process['label']}", str(process["pid"] or "-"), process["state"], str(process["restarts"]), text)
        for process in state["processes"]
        for text in [", ".join(_health(health[name]) for name in process["modules"])]
    ]
    write_table(("  PROCESS", "PID", "STATE", "RESTARTS", "MODULES"), rows)
    for line in (*_restarting(state["processes"]), *_changed_settings(state["modules"])):
        write(f"  {line}")


def _clock(offset: dict[str, int] | None) -> str:
    return f"; its clock is {clock_text(offset['ahead_us'], offset['within_us'])}" if offset else ""


def _counts(counts: dict[str, Any]) -> str:
    """The counts of events: on the way in, and on the way to the readers."""
    receiver, hub = counts["receiver"], counts["hub"]
    arrived = f"{receiver['delivered']} delivered, {receiver['gaps']} lost, {receiver['malformed']} malformed"
    readers = plural(hub["readers"], "reader")
    return f"{arrived}; {readers}, {hub['lag']} behind, {hub['coalesced']} coalesced, {hub['cut']} cut off"


def _health(module: dict[str, Any]) -> str:
    if module["alive"] is None:
        return str(module["name"])
    from dimos_streams.operator.holding import gate_state

    gate = gate_state(module["state"])
    said = f"; {gate}" if gate is not None and module["alive"] else ""
    return f"{module['name']} ({module['health']}{said})"


def _warnings(bridge: dict[str, Any]) -> Iterator[str]:
    """Robots that an operator has stopped, and calls that were asked to end and go on."""
    stopped = bridge.get("stopped", {})
    for stop in stopped.get("stops", ()):
        why = f" ({stop['reason']})" if stop["reason"] else ""
        yield f"STOPPED {stop['robot'] or 'every robot'}{why}, for {_age(stop['utime'])}, until `release-robot`"
    for gate in stopped.get("not_held", ()):
        yield f"NOT held {gate['gate']}: {gate['text']}"
    for call in bridge.get("not_ending", ()):
        asked = f"asked to for {_age(call['since_utime'])}"
        yield f"NOT ending {call['skill']} [{call['call_id']}] of {call['module']}, {asked}: {call['text']}"


def _restarting(processes: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The processes that are restarted at the moment, with why and when."""
    for process in processes:
        if why := process.get("why"):
            yield f"RESTART {process['label']}: {why}"


def _changed_settings(modules: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The settings that an operator has changed since the start."""
    from dimos_streams.live_settings import STATE

    for module in modules:
        for path, value in module["state"].get(STATE, {}).items():
            yield f"SET {module['name']}.{path}={json.dumps(value, ensure_ascii=False)}"


def _said_by(modules: list[dict[str, Any]]) -> Iterator[str]:
    """What modules say may be wrong with them."""
    from dimos_streams.module import WARNINGS

    for module in modules:
        told = module["state"].get(WARNINGS)
        for text in told if module["alive"] and isinstance(told, list) else ():
            yield f"WARNING {module['name']}: {text}"


def _age(utime: int) -> str:
    from dimos_streams import clock

    return _duration(max(0.0, (clock.utime() - utime) / 1e6))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _pidfd(pid: int) -> int | None:
    """Something that can be waited for; None if the process has gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _signal(run: RunRecord) -> None:
    from dimos_streams.common.run_owner import process_start

    if process_start(run.pid) != run.pid_started:  # it ended since we looked, and its number may be another's
        return
    try:
        os.kill(run.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise UserError(f"run {run.run_id} (pid {run.pid}) belongs to somebody else") from error


def _wait_for_end(watched: dict[int, int]) -> list[int]:
    """Wait until the processes have ended, within a bound; those that have not."""
    from dimos_streams import clock

    left = dict(watched)
    deadline = clock.monotonic() + _STOP_BOUND_S
    while left and (remaining := deadline - clock.monotonic()) > 0:
        ended, _, _ = select.select(left.values(), (), (), remaining)
        left = {pid: fd for pid, fd in left.items() if fd not in ended}
    return list(left)
