"""The command that runs a blueprint."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from dimos_streams.cli.terminal import options, run_options
from dimos_streams.cli.terminal.output import note

if TYPE_CHECKING:
    from dimos_streams.cli.running.run_plan import RunPlan


def run(
    reference: options.Blueprint,
    settings: options.Settings = None,
    say: run_options.Say = None,
    duration: run_options.Duration = None,
    exit_when_done: run_options.ExitWhenDone = False,
    in_process: run_options.InProcess = False,
    virtual_time: run_options.VirtualTime = False,
    machine: run_options.Machine = None,
    bridge: run_options.Bridge = None,
    wait: run_options.Wait = None,
    seed: run_options.Seed = 0,
    bus: run_options.Bus = None,
    port: run_options.Port = None,
    token: options.Token = None,
    hub: run_options.Hub = None,
    foxglove: run_options.Foxglove = None,
    record: run_options.Record = None,
    record_channels: run_options.RecordChannels = None,
    record_without: run_options.RecordWithout = None,
    record_split: run_options.RecordSplit = None,
    loss_bound: run_options.LossBound = None,
    reload: run_options.Reload = False,
    daemon: run_options.Daemon = False,
    log_stdout: run_options.LogStdout = False,
    as_json: options.JsonLines = False,
) -> None:
    """Run a blueprint: live, a process for each module, until Ctrl-C, `stop` or the end of `--duration`."""
    from dimos_streams.cli.running.plan_checks import check_options, check_plan, mode_of, watch_sources
    from dimos_streams.cli.running.record_plan import record_plan, unused_patterns
    from dimos_streams.cli.running.run_plan import WAIT_S, RunPlan, prepare
    from dimos_streams.common.process.threads import one_thread_for_matrices
    from dimos_streams.module import LOSS_BOUND_S

    to_record = record_plan(record, record_channels, record_without, record_split)
    mode = mode_of(in_process=in_process, virtual_time=virtual_time)
    check_options(
        mode,
        say=say,
        duration_s=duration,
        exit_when_done=exit_when_done,
        daemon=daemon,
        bus=bus,
        log_stdout=log_stdout,
        machine=machine,
        wait_s=wait,
        hub=hub,
        foxglove=foxglove,
    )
    one_thread_for_matrices()
    if reload:
        watch_sources(mode)
    known = frozenset(sys.modules)
    blueprint, part = prepare(
        reference, settings, port, hub=hub, foxglove=foxglove, virtual=virtual_time, machine=machine
    )
    plan = RunPlan(
        blueprint=blueprint,
        part=part,
        bridge_url=bridge,
        wait_s=WAIT_S if wait is None else wait,
        mode=mode,
        say=tuple(say or ()),
        duration_s=duration,
        exit_when_done=exit_when_done,
        seed=seed,
        bus=bus,
        token=token,
        loss_bound_s=LOSS_BOUND_S if loss_bound is None else loss_bound,
        as_json=as_json,
        reload=reload,
        record=to_record,
        log_stdout=log_stdout,
    )
    check_plan(plan, port)
    if to_record is not None and part is None:  # a part does not know all channels of the other machines
        for line in unused_patterns(to_record, blueprint):
            note(line)
    _execute(plan, known, daemon=daemon)


def _execute(plan: RunPlan, known: frozenset[str], *, daemon: bool) -> None:
    from dimos_streams.cli.running.session import run_session
    from dimos_streams.runtime.processes.output import guard_output
    from dimos_streams.runtime.registry import keep_private

    keep_private()
    guard_output()
    on_ready = None
    if daemon:
        from dimos_streams.cli.running.daemon import detach

        on_ready = detach(as_json=plan.as_json)
    if plan.mode == "live" and not plan.reload:  # a process imports what is to be reloaded by itself
        _fork_server(plan, known)
    if code := run_session(plan, on_ready=on_ready):
        raise typer.Exit(code)


def _fork_server(plan: RunPlan, known: frozenset[str]) -> None:
    from dimos_streams.runtime.plan import library_imports, own_packages, plan_modules
    from dimos_streams.runtime.processes.fork_server import fork_server_from_here

    modules = plan_modules(plan.blueprint)
    fork_server_from_here(library_imports(modules), own_packages(modules), known)
