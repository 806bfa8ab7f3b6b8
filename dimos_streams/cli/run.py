"""The command that runs a blueprint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli import options
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.cli.run_plan import RunPlan


def run(
    reference: options.Blueprint,
    settings: options.Settings = None,
    say: Annotated[
        str | None,
        typer.Option("--say", metavar="TEXT", help="What to tell the agent once all is ready.", show_default=False),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option("--duration", metavar="SECONDS", min=0, help="Stop after so long.", show_default=False),
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
    seed: Annotated[int, typer.Option("--seed", help="Where all randomness comes from.")] = 0,
    bus: Annotated[
        str | None,
        typer.Option(
            "--bus",
            metavar="URL",
            help="The LCM bus. Without it: LCM_DEFAULT_URL, or LCM's usual group on this machine.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=1, max=65535, help="Where the bridge serves HTTP (usually 7780).", show_default=False
        ),
    ] = None,
    token: options.Token = None,
    daemon: Annotated[bool, typer.Option("--daemon", help="Go on in the background once all is ready.")] = False,
    as_json: options.JsonLines = False,
) -> None:
    """Run a blueprint: live, a process for each module, until Ctrl-C, `stop` or the end of `--duration`."""
    from dimos_streams.cli.run_plan import RunPlan, prepare

    if in_process and virtual_time:
        raise UserError("--virtual-time is in one process anyway; leave out --in-process")
    if exit_when_done and say is None:
        raise UserError("--exit-when-done waits for the end of what --say began; give --say TEXT")
    if virtual_time and duration is None and not exit_when_done:
        raise UserError("virtual time never waits, so it needs an end: give --duration SECONDS or --exit-when-done")
    if virtual_time and (daemon or bus is not None):
        raise UserError(
            f"--virtual-time has no use for {'--daemon' if daemon else '--bus'}: nothing leaves the process"
        )
    plan = RunPlan(
        blueprint=prepare(reference, settings, port),
        mode="virtual" if virtual_time else "in-process" if in_process else "live",
        say=say,
        duration_s=duration,
        exit_when_done=exit_when_done,
        seed=seed,
        bus=bus,
        token=token,
        as_json=as_json,
    )
    if say is not None and plan.bridge is None:
        raise UserError(f"blueprint {plan.blueprint.name!r} has no bridge, so there is no agent to say anything to")
    _execute(plan, daemon=daemon)


def _execute(plan: RunPlan, *, daemon: bool) -> None:
    from dimos_streams.cli.session import run_session

    if daemon:
        from dimos_streams.cli.daemon import detach

        code = run_session(plan, on_ready=detach())
    else:
        code = run_session(plan)
    if code:
        raise typer.Exit(code)
