"""The command that stops a run, and waits until all its processes have gone."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, write, write_json
from dimos_streams.common.readable.listed import listed
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import DimosStreamsError, UserError

if TYPE_CHECKING:
    from dimos_streams.runtime.registry import RunRecord


_SLOW_S = 1.0
"""The time, in seconds, after which a person hears which processes a stop waits for."""
_HELPERS_S = 3.0
"""Maximum time, in seconds, to wait for what the main process has started besides: the processes from which others
are forked end by themselves after it, but what a module has started and left behind need not."""
_SHOWN = 100
"""Maximum length of the names of these, in characters."""


def stop(
    selector: options.RunArgument = None,
    machine: options.Machine = None,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--everywhere",
            help="Stop the parts of the run on all other machines, too, through the bridge, before the one here.",
        ),
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Stop all living runs of this machine.")] = False,
    *,
    bridge: BridgeChoice,
    as_json: options.Json = False,
) -> None:
    """Stop a run, and wait until all its processes have ended. Of a run on several machines, stop the part on this
    one."""
    from dimos_streams.cli.bridge_client.connection import find_run, living_runs
    from dimos_streams.cli.bridge_client.machine_parts import part_here

    selector = options.named_run(selector, bridge.run)
    if machine is not None and everywhere:
        raise UserError("--machine names one part and --everywhere means all; give one of them")
    if every and (selector or machine) is not None:
        raise UserError(f"--all is every run, and {selector or machine!r} names one; give one of them")
    asks = machine is not None or (everywhere and not every)
    bridge.refuse_unless(asks, by="--machine or --everywhere")
    part = None if machine is None or bridge.has_address else part_here(machine, selector, alone=True)
    if machine is not None and part is None:
        _stop_elsewhere(machine, selector, bridge, as_json=as_json)
    elif every:
        _stop_all(living_runs(), bridge, everywhere=everywhere, as_json=as_json)
    else:
        _stop_run(part or find_run(selector, alone=True), bridge, everywhere=everywhere, as_json=as_json)


def _stop_elsewhere(machine: str, selector: str | None, bridge: BridgeChoice, *, as_json: bool) -> None:
    """End the part of a run on another machine."""
    from dimos_streams.cli.bridge_client.connection import find_bridge, find_run
    from dimos_streams.cli.bridge_client.machine_parts import stop_part
    from dimos_streams.cli.system.async_runner import run_async

    named = None if selector is None else find_run(selector, alone=True).run_id
    run_async(stop_part(find_bridge(replace(bridge, run=named)), machine))
    _say_stopped({"machine": machine}, f"the part on {machine} has stopped", as_json=as_json)


def _stop_all(runs: Iterable[RunRecord], bridge: BridgeChoice, *, everywhere: bool, as_json: bool) -> None:
    """Stop runs, whatever becomes of the others. Raises ``DimosStreamsError`` with those that have not stopped.

    Of several parts of one run that are here, the first has all others end ``everywhere``.
    """
    from dimos_streams.cli.terminal.named_runs import are_parts_of_one
    from dimos_streams.runtime.unreadable_runs import unreadable_runs

    problems = list(map(str, unreadable_runs()))
    done: list[RunRecord] = []
    for run in runs:
        is_asked = everywhere and not any(are_parts_of_one(run, each) for each in done)
        done.append(run)
        try:
            _stop_run(run, bridge, everywhere=is_asked, as_json=as_json)
        except DimosStreamsError as error:
            problems.append(str(error))
    if problems:
        raise DimosStreamsError(f"not all runs have stopped: {'; '.join(problems)}")


def _stop_run(run: RunRecord, bridge: BridgeChoice, *, everywhere: bool, as_json: bool) -> None:
    """Stop a run here, after its parts on other machines if it is to end ``everywhere``."""
    may_have_others = bool(run.machine) or bridge.has_address
    others = _stop_others(run, bridge, as_json=as_json) if everywhere and may_have_others else []
    _stop_here(run, as_json=as_json)  # whatever became of the others: this one can be reached
    if others:
        raise DimosStreamsError(f"of the other parts, not all have stopped: {'; '.join(others)}")


def _stop_others(run: RunRecord, bridge: BridgeChoice, *, as_json: bool) -> list[str]:
    """End the parts of a run on other machines; return which could not be ended, and why."""
    from dimos_streams.cli.bridge_client.connection import find_bridge
    from dimos_streams.cli.bridge_client.machine_parts import machines_at, stop_part
    from dimos_streams.cli.system.async_runner import run_async

    problems: list[str] = []
    try:
        address = find_bridge(replace(bridge, run=None if bridge.has_address else run.run_id))
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


def _say_stopped(what: dict[str, str], text: str, *, as_json: bool) -> None:
    if as_json:
        write_json({**what, "stopped": True})  # in one line: there may be several
    else:
        write(text)


def _stop_here(run: RunRecord, *, as_json: bool) -> None:
    from dimos_streams.common.process.run_owner import children_of
    from dimos_streams.runtime.registry import STOP_BOUND_S, lives

    known = [(run.pid, run.pid_started), *((process.pid, process.pid_started) for process in run.processes)]
    watched = _watched(pid for pid, started in known if pid is not None and lives(pid, started))
    helpers = _watched(pid for pid in children_of(run.pid) if pid not in watched) if run.pid in watched else {}
    try:
        _signal(run, watched)
        if left := _wait_for_end(watched, _SLOW_S):
            waits = f"waiting for {_names(run, left)} of {run.run_id} to end, {STOP_BOUND_S:g} s at most"
            note(waits + _suspension(run))
            left = _wait_for_end({pid: watched[pid] for pid in left}, STOP_BOUND_S - _SLOW_S)
        if not left:
            _wait_for_end(helpers, _HELPERS_S)
    finally:
        for fd in (*watched.values(), *helpers.values()):
            os.close(fd)
    if left:
        numbers = " ".join(map(str, left))
        late = f"{run.run_id} did not end within {STOP_BOUND_S:g} s; `kill -9 {numbers}` ends it"
        raise DimosStreamsError(late + _suspension(run))
    _say_stopped({"run_id": run.run_id, "blueprint": run.blueprint}, f"{run.run_id} has stopped", as_json=as_json)


def _suspension(run: RunRecord) -> str:
    """Return what lets a run end that can't because it is suspended; empty for any other."""
    from dimos_streams.common.process.run_owner import is_suspended

    return f"; it is SUSPENDED: `kill -CONT {run.pid}` lets it end in order" if is_suspended(run.pid) else ""


def _watched(pids: Iterable[int]) -> dict[int, int]:
    """Return the descriptors, by process, of those that are there."""
    return {pid: fd for pid in dict.fromkeys(pids) if (fd := _pidfd(pid)) is not None}


def _pidfd(pid: int) -> int | None:
    """Return a descriptor that can be waited for; None if the process has gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _signal(run: RunRecord, watched: dict[int, int]) -> None:
    from dimos_streams.common.process.run_owner import process_start

    # What is watched stays the same process; that it is the run's is looked at again, as it may have ended before.
    if run.pid not in watched or process_start(run.pid) != run.pid_started:
        return
    try:
        signal.pidfd_send_signal(watched[run.pid], signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise UserError(f"run {run.run_id} (pid {run.pid}) belongs to somebody else") from error


def _names(run: RunRecord, pids: Collection[int]) -> str:
    """Return the processes of a run that have these ids as people know them."""
    labels = [process.label for process in run.processes if process.pid in pids]
    return shortened(listed(labels or ["the main process"]), _SHOWN)


def _wait_for_end(watched: dict[int, int], bound_s: float) -> list[int]:
    """Wait until the processes have ended, within a bound; return those that have not."""
    from dimos_streams import clock

    left = dict(watched)
    deadline = clock.monotonic() + bound_s
    while left and (remaining := deadline - clock.monotonic()) > 0:
        ended, _, _ = select.select(left.values(), (), (), remaining)
        left = {pid: fd for pid, fd in left.items() if fd not in ended}
    return list(left)
