"""The command that shows the living runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, write, write_json
from dimos_streams.errors import DimosStreamsError


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
    from dimos_streams.cli.bridge_client.run_state import states_of
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.runtime.registry import runs

    states = run_async(states_of(runs()))
    if states or not ready:
        _write_states(states, as_json=as_json)
    if ready and (missing := unready(states)):
        raise DimosStreamsError(f"not ready: {'; '.join(missing)}")


def _write_states(states: list[dict[str, Any]], *, as_json: bool) -> None:
    from dimos_streams.cli.terminal.run_text import write_run

    if as_json:
        write_json(states, indent=2)
    elif not states:
        note("no run lives; `dimos-streams run BLUEPRINT` starts one")
    for number, state in enumerate([] if as_json else states):
        if number:
            write("")
        write_run(state)
