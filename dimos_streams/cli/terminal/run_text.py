"""The text of a run that `status` shows in a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from dimos_streams.cli.system.clock_offset_text import clock_offset_text
from dimos_streams.cli.terminal.output import write, write_table
from dimos_streams.common.readable.plural import plural


def write_run(state: dict[str, Any]) -> None:
    """Write what is known of a run, as ``states_of`` has it."""
    bridge = state["bridge"]
    calls = f", {plural(bridge['open_calls'], 'open call')}" if "open_calls" in bridge else ""
    write(f"{state['run_id']}  up {_elapsed(state['up_s'])}  pid {state['pid']}")
    if state["supervisor"] == "suspended":
        write(f"  SUSPENDED: nothing that ends is restarted, nor does `stop` end the run: kill -CONT {state['pid']}")
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
    for line in (*warnings(bridge), *waiting_at(state["modules"]), *said_by(state["modules"])):
        write(f"  {line}")
    health = {module["name"]: module for module in state["modules"]}
    rows = []
    for process in state["processes"]:
        modules = ", ".join(_health(health[name]) for name in process["modules"])
        pid, restarts = str(process["pid"] or "-"), str(process["restarts"])
        rows.append((f"  {process['label']}", pid, process["state"], restarts, modules))
    write_table(("  PROCESS", "PID", "STATE", "RESTARTS", "MODULES"), rows)
    for line in (*restarting(state["processes"]), *_changed_settings(state["modules"])):
        write(f"  {line}")


def _clock(offset: dict[str, int] | None) -> str:
    return f"; its clock is {clock_offset_text(offset['ahead_us'], offset['within_us'])}" if offset else ""


def _counts(counts: dict[str, Any]) -> str:
    """Return the counts of events: on the way in, and on the way to the readers."""
    receiver, sent = counts["receiver"], counts["broadcast"]
    arrived = f"{receiver['delivered']} delivered, {receiver['gaps']} lost, {receiver['malformed']} malformed"
    readers = plural(sent["readers"], "reader")
    return f"{arrived}; {readers}, {sent['lag']} behind, {sent['coalesced']} coalesced, {sent['cut']} cut off"


def _health(module: dict[str, Any]) -> str:
    if module["alive"] is None:
        return str(module["name"])
    from dimos_streams.operator.holding import gate_state

    gate = gate_state(module["state"])
    said = f"; {gate}" if gate is not None and module["alive"] else ""
    return f"{module['name']} ({module['health']}{said})"


def warnings(bridge: dict[str, Any]) -> Iterator[str]:
    """Yield robots that an operator has stopped, and calls that were asked to end and go on."""
    stopped = bridge.get("stopped", {})
    for stop in stopped.get("stops", ()):
        why = f" ({stop['reason']})" if stop["reason"] else ""
        yield f"STOPPED {stop['robot'] or 'every robot'}{why}, for {_age(stop['utime'])}, until `release-robot`"
    for gate in stopped.get("not_held", ()):
        yield f"NOT held {gate['gate']}: {gate['text']}"
    for call in bridge.get("not_ending", ()):
        asked = f"asked to for {_age(call['since_utime'])}"
        yield f"NOT ending {call['skill']} [{call['call_id']}] of {call['module']}, {asked}: {call['text']}"


def restarting(processes: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the processes that are restarted at the moment, with why and when, those that have failed and are not
    restarted, and those that run but have ended again and again until just now."""
    for process in processes:
        why = process.get("why")
        if why and process["state"] in ("waiting", "starting"):
            yield f"RESTART {process['label']}: {why}"
        elif why and process["state"] == "failed":
            yield f"FAILED {process['label']}: {why}; `dimos-streams restart {process['modules'][0]}` starts it again"
        elif process["state"] == "ready" and (failing := process.get("failing")):
            restarts = plural(process["restarts"], "restart")
            yield f"FAILING {process['label']}: {restarts}, the last one just now: {failing}"


def _changed_settings(modules: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the settings that an operator has changed since the start."""
    from dimos_streams.live_settings import STATE

    for module in modules:
        for path, value in module["state"].get(STATE, {}).items():
            yield f"SET {module['name']}.{path}={json.dumps(value, ensure_ascii=False)}"


def waiting_at(modules: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what waits for an operator at agents that are alive."""
    from dimos_streams.operator.messages.waiting import waiting_lines

    for module in modules:
        if module["alive"]:
            yield from waiting_lines(module["name"], module["state"])


def said_by(modules: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what modules say may be wrong with them."""
    from dimos_streams.module import WARNINGS

    for module in modules:
        warnings = module["state"].get(WARNINGS)
        for text in warnings if module["alive"] and isinstance(warnings, list) else ():
            yield f"WARNING {module['name']}: {text}"


def _age(utime: int) -> str:
    from dimos_streams import clock

    return _elapsed(max(0.0, (clock.utime() - utime) / 1e6))


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
