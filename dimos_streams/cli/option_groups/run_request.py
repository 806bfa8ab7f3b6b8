"""The request that `run` is: all its options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from dimos_streams.cli.option_groups.bridge_choice import Token
from dimos_streams.cli.option_groups.foxglove_option import FOXGLOVE
from dimos_streams.cli.terminal import options

Mode = Literal["live", "in-process", "virtual"]


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A request to run a blueprint, in the form of the options that state it."""

    reference: options.Blueprint
    settings: options.Settings = None
    say: Annotated[
        list[str] | None,
        typer.Option(
            "--say",
            metavar="TEXT",
            help="What to tell the agent once everything is ready. With several agents, begin with the name of one: "
            "'robot1: …'. May be given several times.",
        ),
    ] = None
    duration_s: Annotated[
        float | None,
        typer.Option(
            "--duration",
            metavar="SECONDS",
            min=0,
            help="Stop after this time. Exits with 0 unless something that `--say` began has ended without"
            " completing.",
        ),
    ] = None
    exit_when_done: Annotated[
        bool,
        typer.Option(
            "--exit-when-done", help="Stop when all that `--say` began is over. Exits with 0 if it completed."
        ),
    ] = False
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Run all modules in one process, for debugging.")
    ] = False
    virtual_time: Annotated[
        bool,
        typer.Option(
            "--virtual-time",
            help="Run all modules in one process, in virtual time, as fast as possible. The same seed gives the"
            " same run.",
        ),
    ] = False
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="Run only the modules that the blueprint assigns to this machine. Without it: run all of them here.",
        ),
    ] = None
    bridge_url: Annotated[
        str | None,
        typer.Option(
            "--bridge",
            callback=options.typed_url,
            metavar="URL",
            help="With --machine: the URL of a bridge that runs on another machine, for agents and commands on"
            " this one.",
        ),
    ] = None
    wait_s: Annotated[
        float | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="With --machine: how long `--say` waits for the modules of other machines. Without it: 60.",
        ),
    ] = None
    seed: Annotated[
        int, typer.Option("--seed", callback=options.checked_seed, help="The seed of all randomness in the run.")
    ] = 0
    bus: Annotated[
        str | None,
        typer.Option(
            "--bus",
            callback=options.typed_url,
            metavar="URL",
            help="The bus: udpm://… (LCM) or zenoh://…. Without it: DIMOS_STREAMS_BUS, LCM_DEFAULT_URL, or LCM's"
            " usual group on this machine.",
        ),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=1,
            max=65535,
            help="The port on which the bridge serves HTTP. Without it: usually 7780; in virtual time the bridge "
            "serves only if a port is given, and only for watching.",
        ),
    ] = None
    token: Token = None
    hub: Annotated[
        str | None,
        typer.Option(
            "--hub",
            metavar="URL",
            help="Ship the journal to this fleet hub, and take its commands: sets `hub.url` of the bridge.",
        ),
    ] = None
    foxglove: Annotated[
        str | None,
        typer.Option(
            FOXGLOVE,
            metavar="[HOST:PORT]",
            help="Serve the run to Foxglove and other viewers that speak its protocol, by default at 127.0.0.1:8765.",
        ),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Write all messages into an LCM log; see `recording`."),
    ] = None
    record_channels: Annotated[
        list[str] | None,
        typer.Option(
            "--record-channels",
            metavar="PATTERN",
            help="Record only topics ('/robot1/*') or channels ('*#sensor_msgs.Image') that match. May be given "
            "several times.",
        ),
    ] = None
    record_without: Annotated[
        list[str] | None,
        typer.Option(
            "--record-without",
            metavar="PATTERN",
            help="Do not record topics or channels that match. May be given several times.",
        ),
    ] = None
    record_split_mb: Annotated[
        float | None,
        typer.Option(
            "--record-split",
            metavar="MB",
            min=0.001,
            max=1_000_000,
            help="Begin another file (a.1.lcmlog, a.2.lcmlog) whenever one has reached this size.",
        ),
    ] = None
    loss_bound_s: Annotated[
        float | None,
        typer.Option(
            "--loss-bound",
            metavar="SECONDS",
            min=0.5,
            max=3600,
            help="End a call that moves the robot when nobody has acknowledged its events for this time. Without"
            " it: 2.",
        ),
    ] = None
    reload: Annotated[
        bool,
        typer.Option("--reload", help="Restart each module whose source files change while it runs."),
    ] = False
    daemon: Annotated[bool, typer.Option("--daemon", help="Continue in the background once everything is ready.")] = (
        False
    )
    log_stdout: Annotated[
        bool,
        typer.Option(
            "--log-stdout", help="Also write the log of each process to standard output, as is usual in containers."
        ),
    ] = False
    as_json: options.JsonLines = False

    @property
    def said(self) -> tuple[str, ...]:
        """The texts for agents, in their order."""
        return tuple(self.say or ())

    @property
    def mode(self) -> Mode:
        """The mode of the run: a process for each module, one for all, or one for all that does not wait."""
        return "virtual" if self.virtual_time else "in-process" if self.in_process else "live"
