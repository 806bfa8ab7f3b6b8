"""The command that runs a blueprint."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.terminal import options

if TYPE_CHECKING:
    from dimos_streams.cli.running.run_plan import RunPlan


def run(
    reference: options.Blueprint,
    settings: options.Settings = None,
    say: Annotated[
        list[str] | None,
        typer.Option(
            "--say",
            metavar="TEXT",
            help="What to tell the agent once all is ready; with several agents begin with one's name, 'robot1: …'. "
            "May be given several times.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            metavar="SECONDS",
            min=0,
            help="Stop after so long; exits with 0 unless something that `--say` began has ended without completing.",
            show_default=False,
        ),
    ] = None,
    exit_when_done: Annotated[
        bool,
        typer.Option("--exit-when-done", help="Stop when what `--say` began is over; exits with 0 if it completed."),
    ] = False,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="All modules in one process, for debugging.")
    ] = False,
    virtual_time: Annotated[
        bool,
        typer.Option(
            "--virtual-time",
            help="All modules in one process, as fast as it can; the same seed gives the same run.",
        ),
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="Run what the blueprint gives to this machine, beside the others; without it run all of it here.",
            show_default=False,
        ),
    ] = None,
    bridge: Annotated[
        str | None,
        typer.Option(
            "--bridge",
            metavar="URL",
            help="With --machine: where the bridge answers that another machine runs, for agents and commands here.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="With --machine: how long `--say` waits for the other machines; 60 unless given.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Where all randomness comes from.")] = 0,
    bus: Annotated[
        str | None,
        typer.Option(
            "--bus",
            metavar="URL",
            help="The bus: udpm://… (LCM) or zenoh://…. Without it: DIMOS_STREAMS_BUS, LCM_DEFAULT_URL, or LCM's"
            " usual group on this machine.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=1,
            max=65535,
            help="Where the bridge serves HTTP (usually 7780). In virtual time "
            "it serves only if this is given, and only for watching.",
            show_default=False,
        ),
    ] = None,
    token: options.Token = None,
    hub: Annotated[
        str | None,
        typer.Option(
            "--hub",
            metavar="URL",
            help="Ship the journal to this fleet hub, and take its commands: sets `hub.url` of the bridge.",
            show_default=False,
        ),
    ] = None,
    foxglove: Annotated[
        str | None,
        typer.Option(
            "--foxglove",
            metavar="[HOST:PORT]",
            help="Serve the run to Foxglove and other viewers of its protocol; 127.0.0.1:8765 unless given.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Write all messages into an LCM log; see `recording`.",
            show_default=False,
        ),
    ] = None,
    record_channels: Annotated[
        list[str] | None,
        typer.Option(
            "--record-channels",
            metavar="PATTERN",
            help="Record only such topics ('/robot1/*') or channels ('*#sensor_msgs.Image'); several times.",
            show_default=False,
        ),
    ] = None,
    record_without: Annotated[
        list[str] | None,
        typer.Option(
            "--record-without", metavar="PATTERN", help="Leave such ones out; several times.", show_default=False
        ),
    ] = None,
    record_split: Annotated[
        float | None,
        typer.Option(
            "--record-split",
            metavar="MB",
            min=0.001,
            help="Begin another file (a.1.lcmlog, a.2.lcmlog) when one has reached the size.",
            show_default=False,
        ),
    ] = None,
    loss_bound: Annotated[
        float | None,
        typer.Option(
            "--loss-bound",
            metavar="SECONDS",
            min=0.5,
            max=3600,
            help="End a call that moves the robot when nobody has acknowledged it for so long; 2 unless given.",
            show_default=False,
        ),
    ] = None,
    reload: Annotated[
        bool,
        typer.Option("--reload", help="Restart what changes: each module whose sources are written while it runs."),
    ] = False,
    daemon: Annotated[bool, typer.Option("--daemon", help="Go on in the background once all is ready.")] = False,
    log_stdout: Annotated[
        bool,
        typer.Option("--log-stdout", help="Show what all processes log, too, as containers' logs are expected to."),
    ] = False,
    as_json: options.JsonLines = False,
) -> None:
    """Run a blueprint: live, a process for each module, until Ctrl-C, `stop` or the end of `--duration`."""
    from dimos_streams.cli.running.plan_checks import check_options, check_plan, mode_of, watch_sources
    from dimos_streams.cli.running.record_plan import record_plan
    from dimos_streams.cli.running.run_plan import WAIT_S, RunPlan, prepare
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
    # Numpy reads it only once. One thread is faster for matrices as small as ours.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
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
    _execute(plan, known, daemon=daemon)


def _execute(plan: RunPlan, known: frozenset[str], *, daemon: bool) -> None:
    from dimos_streams.cli.running.session import run_session
    from dimos_streams.runtime.processes.output import tolerate_full_disk
    from dimos_streams.runtime.registry import keep_private

    keep_private()
    tolerate_full_disk()
    on_ready = None
    if daemon:
        from dimos_streams.cli.running.daemon import detach

        on_ready = detach()
    if plan.mode == "live" and not plan.reload:  # a process imports what is to be reloaded by itself
        _fork_server(plan, known)
    if code := run_session(plan, on_ready=on_ready):
        raise typer.Exit(code)


def _fork_server(plan: RunPlan, known: frozenset[str]) -> None:
    from dimos_streams.runtime.plan import library_imports, own_packages, plan_modules
    from dimos_streams.runtime.processes.fork_server import fork_server_from_here

    modules = plan_modules(plan.blueprint)
    fork_server_from_here(library_imports(modules), own_packages(modules), known)
