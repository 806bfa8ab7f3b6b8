"""Puts the commands together. Only what their arguments need is imported here; the rest inside each command."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from dimos_streams.cli import exit_codes
from dimos_streams.cli.commands import (
    blueprints,
    calls,
    chat,
    doctor,
    messages,
    missions,
    monitor,
    recording,
    replay,
    robots,
    run,
    runs,
    topics,
)
from dimos_streams.cli.commands import operator as control

_CONTROL = "The operator's control"
_BLUEPRINTS, _RUNS, _SKILLS = "Blueprints", "Runs", "Skills and the agent"
_BUS, _LOGS = "The bus and this machine", "Recordings"


def create_app() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        help="Middleware for robots whose skills talk back.",
        epilog=exit_codes.table(),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    app.command("run", rich_help_panel=_RUNS)(run.run)
    app.command("status", rich_help_panel=_RUNS)(runs.status)
    app.command("stop", rich_help_panel=_RUNS)(runs.stop)
    app.command("logs", rich_help_panel=_RUNS)(runs.logs)
    app.command("missions", rich_help_panel=_RUNS)(missions.missions)
    app.command("list", rich_help_panel=_BLUEPRINTS)(blueprints.list_blueprints)
    app.command("check", rich_help_panel=_BLUEPRINTS)(blueprints.check)
    app.command("graph", rich_help_panel=_BLUEPRINTS)(blueprints.graph)
    app.command("config", rich_help_panel=_BLUEPRINTS)(blueprints.config)
    app.command("say", rich_help_panel=_SKILLS)(calls.say)
    app.command("chat", rich_help_panel=_SKILLS)(chat.chat)
    app.command("skills", rich_help_panel=_SKILLS)(calls.skills)
    app.command("call", rich_help_panel=_SKILLS)(calls.call)
    app.command("calls", rich_help_panel=_SKILLS)(calls.calls)
    app.command("cancel", rich_help_panel=_SKILLS)(calls.cancel)
    app.command("approvals", rich_help_panel=_CONTROL)(control.approvals)
    app.command("approve", rich_help_panel=_CONTROL)(control.approve)
    app.command("reject", rich_help_panel=_CONTROL)(control.reject)
    app.command("pause", rich_help_panel=_CONTROL)(control.pause)
    app.command("resume", rich_help_panel=_CONTROL)(control.resume)
    app.command("step", rich_help_panel=_CONTROL)(control.step)
    app.command("abort", rich_help_panel=_CONTROL)(control.abort)
    app.command("undo", rich_help_panel=_CONTROL)(control.undo)
    app.command("stop-robot", rich_help_panel=_CONTROL)(robots.stop_robot)
    app.command("release-robot", rich_help_panel=_CONTROL)(robots.release_robot)
    app.command("forget", rich_help_panel=_CONTROL)(control.forget)
    app.command("monitor", rich_help_panel=_CONTROL)(monitor.monitor)
    app.add_typer(topics.create_app(), name="topics", rich_help_panel=_BUS)
    app.add_typer(messages.create_app(), name="messages", rich_help_panel=_BUS)
    app.add_typer(recording.create_app(), name="recording", rich_help_panel=_LOGS)
    app.command("replay", rich_help_panel=_LOGS)(replay.replay)
    app.command("doctor", rich_help_panel=_BUS)(doctor.doctor)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        from dimos_streams import __version__

        print(__version__)
        raise typer.Exit


def _global_options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; so does DIMOS_STREAMS_DEBUG=1.", show_default=False)
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    if debug:
        os.environ["DIMOS_STREAMS_DEBUG"] = "1"
