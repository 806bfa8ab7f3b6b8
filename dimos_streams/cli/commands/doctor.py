"""The command that looks whether this machine can run blueprints: doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.exit_codes import FAILED
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import write, write_json
from dimos_streams.common.process.loopback import BRIDGE_PORT
from dimos_streams.common.readable.plural import plural

if TYPE_CHECKING:
    from dimos_streams.cli.system.finding import Finding

_MARKS = {"ok": "ok  ", "warning": "warn", "error": "FAIL"}


def doctor(
    bus: options.BusUrl = None,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            envvar="DIMOS_STREAMS__BRIDGE__PORT",
            help="The port on which a bridge is to serve; 0 stands for any free one.",
        ),
    ] = BRIDGE_PORT,
    as_json: options.Json = False,
) -> None:
    """Look whether this machine can run blueprints, and show the exact commands that mend it. Changes nothing."""
    from dimos_streams.cli.bridge_client.connection import bus_among
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.cli.system.machine_checks import examine, known_runs

    living = known_runs()
    findings = run_async(examine(bus_among(living, bus), port, living))
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        write_json({"usable": not errors, "findings": [finding.to_dict() for finding in findings]}, indent=2)
    else:
        for finding in findings:
            _write(finding)
        write("")
        write(f"not usable: {plural(errors, 'problem')}" if errors else "usable")
    if errors:
        raise typer.Exit(FAILED)


def _write(finding: Finding) -> None:
    write(f"{_MARKS[finding.severity]}  {finding.name:<16} {finding.text}")
    for command in finding.commands:
        write(f"{'':6}{'':16} {command}")
