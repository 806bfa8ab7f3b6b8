"""The text of a run's state that ``status`` shows in a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from dimos_streams import clock
from dimos_streams.cli.bridge_client.run_status.state import (
    AnsweringBridge,
    EventCounts,
    ModuleState,
    RunState,
    UnreachableBridge,
)
from dimos_streams.cli.system.clock_offset_text import clock_offset_text
from dimos_streams.cli.terminal.output import write, write_table
from dimos_streams.common.readable.byte_size import byte_size
from dimos_streams.common.readable.plural import plural
from dimos_streams.live_settings import reported_settings
from dimos_streams.module import WARNINGS
from dimos_streams.operator.holding import gate_state
from dimos_streams.operator.messages.stop import GoingOn, StoppedRobots
from dimos_streams.operator.messages.waiting import waiting_lines
from dimos_streams.runtime.events import ProcessView
from dimos_streams.tool_stream.liveness.part_state import ClockOffset


def write_run(state: RunState) -> None:
    """Write what is known of a run."""
    bridge = state.bridge if isinstance(state.bridge, AnsweringBridge) else None
    write(f"{state.run_id}  up {_elapsed(state.up_s)}  pid {state.pid}")
    if state.supervisor == "suspended":
        write(f"  SUSPENDED: nothing that ends is restarted, nor does `stop` end the run: kill -CONT {state.pid}")
    for line in (*_bridge_lines(state), *_place_lines(state)):
        write(f"  {line}")
    if bridge is not None:
        for line in (*_lost(bridge.lost), *warnings(bridge.stopped, bridge.not_ending)):
            write(f"  {line}")
    for line in (*waiting_at(state.modules), *said_by(state.modules)):
        write(f"  {line}")
    _write_processes(state)
    for line in (*restarting(state.processes), *_changed_settings(state.modules)):
        write(f"  {line}")


def _bridge_lines(state: RunState) -> Iterator[str]:
    """Yield how the bridge stands, and the counts of its events."""
    bridge = state.bridge
    match bridge:
        case AnsweringBridge():
            yield f"bridge  {bridge.url} {bridge.status}, {plural(bridge.open_calls, 'open call')}"
            yield f"events  {_counts(bridge.counts)}"
            if bridge.hub is not None:
                yield f"hub     {bridge.hub.text}"
        case UnreachableBridge():
            yield f"bridge  {bridge.url} {bridge.status}"
            yield f"        {bridge.problem}"
        case _:
            yield "bridge  none in this run"


def _place_lines(state: RunState) -> Iterator[str]:
    """Yield the run's bus, its machines, and where its files are."""
    yield f"bus     {state.bus}"
    if state.machine:
        yield f"machine {state.machine}"
    for machine in state.machines:
        yield f"beside  {machine.name} ({machine.problem or 'ready'}){_clock(machine.clock)}"
        if machine.modules:
            yield f"        {', '.join(map(_health, machine.modules))}"
    full = "" if state.disk == "ok" else f"  ({state.disk}: logs, mission records and pictures are lost)"
    yield f"files   {state.run_dir}{full}"


def _lost(what: Iterable[str]) -> Iterator[str]:
    if listed := ", ".join(what):
        yield f"lost    {listed}"


def _write_processes(state: RunState) -> None:
    """Write the table of processes, with the health of the modules in each."""
    health = {module.name: _health(module) for module in state.modules}
    rows = []
    for process in state.processes:
        modules = ", ".join(health[name] for name in process.modules)
        cpu = "-" if process.cpu_s is None else _elapsed(process.cpu_s)
        memory = "-" if process.memory_bytes is None else byte_size(process.memory_bytes)
        rows.append(
            (
                f"  {process.label}",
                str(process.pid or "-"),
                process.state,
                str(process.restarts),
                cpu,
                memory,
                modules,
            )
        )
    write_table(("  PROCESS", "PID", "STATE", "RESTARTS", "CPU", "MEMORY", "MODULES"), rows)


def _clock(offset: ClockOffset | None) -> str:
    return f"; its clock is {clock_offset_text(offset.ahead_us, offset.within_us)}" if offset else ""


def _counts(counts: EventCounts) -> str:
    """Return the counts of events: on the way in, and on the way to the readers."""
    receiver, sent = counts.receiver, counts.broadcast
    arrived = f"{receiver.delivered} delivered, {receiver.gaps} lost, {receiver.malformed} malformed"
    readers = plural(sent.readers, "reader")
    return f"{arrived}; {readers}, {sent.lag} behind, {sent.coalesced} coalesced, {sent.cut} cut off"


def _health(module: ModuleState) -> str:
    if module.alive is None:
        return module.name
    gate = gate_state(module.state)
    said = f"; {gate}" if gate is not None and module.alive else ""
    return f"{module.name} ({module.health}{said})"


def warnings(stopped: StoppedRobots, not_ending: Iterable[GoingOn]) -> Iterator[str]:
    """Yield robots that an operator has stopped, and calls that were asked to end and go on."""
    for stop in stopped.stops:
        why = f" ({stop.reason})" if stop.reason else ""
        yield f"STOPPED {stopped.kept_still(stop)}{why}, for {_age(stop.utime)}, until `release-robot`"
    for gate in stopped.not_held:
        yield f"NOT held {gate.gate}: {gate.text}"
    for call in not_ending:
        yield f"NOT ending {call}, asked to for {_age(call.since_utime)}: {call.text}"


def restarting(processes: Iterable[ProcessView]) -> Iterator[str]:
    """Yield the processes that are restarted at the moment, with why and when, those that have failed and are not
    restarted, and those that run but have ended again and again until just now."""
    for process in processes:
        why = process.why
        if why and process.state in ("waiting", "starting"):
            yield f"RESTART {process.label}: {why}"
        elif why and process.state == "failed":
            yield f"FAILED {process.label}: {why}; `dimos-streams restart {process.modules[0]}` starts it again"
        elif process.state == "ready" and process.failing:
            restarts = plural(process.restarts, "restart")
            yield f"FAILING {process.label}: {restarts}, the last one just now: {process.failing}"


def _changed_settings(modules: Iterable[ModuleState]) -> Iterator[str]:
    """Yield the settings that an operator has changed since the start."""
    for module in modules:
        for path, value in reported_settings(module.state).items():
            yield f"SET {module.name}.{path}={json.dumps(value, ensure_ascii=False)}"


def waiting_at(modules: Iterable[ModuleState]) -> Iterator[str]:
    """Yield what waits for an operator at agents that are alive."""
    for module in modules:
        if module.alive:
            yield from waiting_lines(module.name, module.state)


def said_by(modules: Iterable[ModuleState]) -> Iterator[str]:
    """Yield what modules say may be wrong with them."""
    for module in modules:
        texts = module.state.get(WARNINGS)
        for text in texts if module.alive and isinstance(texts, list) else ():
            yield f"WARNING {module.name}: {text}"


def _age(utime: int) -> str:
    return _elapsed(max(0.0, (clock.utime() - utime) / 1e6))


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
