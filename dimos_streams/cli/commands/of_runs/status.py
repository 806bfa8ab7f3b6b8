"""The command that shows the living runs, and those that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import local_time, note, write, write_json, write_table
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import DimosStreamsError, NoRunError, UserError

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.run_status.state import RunState
    from dimos_streams.runtime.ended_runs import EndedRun

_SHOWN = 80
"""The characters of how a run ended that a row has room for; ``--json`` has all of it."""


def status(
    selector: options.OnlyRunArgument = None,
    ready: Annotated[
        bool,
        typer.Option(
            "--ready",
            help="Exit with 1 unless there is a living run, and each has its processes (none of which keeps failing),"
            " its modules and a bridge that answers. A robot that is STOPPED, or a call that is NOT ending, does not"
            " count against a run.",
        ),
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="First list the runs that have ended and are still kept, newest last: when, how, and their logs.",
        ),
    ] = False,
    run: options.OnlyRunOption = None,
    as_json: options.Json = False,
) -> None:
    """Show the living runs, or one of them: processes, modules' health, the bridge."""
    from dimos_streams.cli.bridge_client.connection import find_run
    from dimos_streams.cli.bridge_client.ended import last_ended
    from dimos_streams.cli.bridge_client.run_status.state import json_form
    from dimos_streams.cli.bridge_client.run_status.states import states_of
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.runtime.ended_runs import ended_runs
    from dimos_streams.runtime.registry import runs
    from dimos_streams.runtime.unreadable_runs import unreadable_runs

    selector = options.named_run(selector, run)
    if every and selector is not None:
        raise UserError(f"--all is every run, and {selector!r} names one; give one of them")
    states = run_async(states_of(runs() if selector is None else [find_run(selector)]))
    unreadable = list(map(str, unreadable_runs() if selector is None else ()))
    if not ready:
        for text in unreadable:
            note(text)
    ended = ended_runs() if every else []
    if every and as_json:
        write_json({"ended": [_end(run) for run in ended], "living": json_form(states)}, indent=2)
    elif as_json and (states or not ready):
        write_json(json_form(states), indent=2)
    elif not as_json:
        _write_runs(ended, states)
        if not states and not ready and not unreadable:
            note(str(NoRunError(f"no run lives{'' if every else last_ended()}")))
    if ready:
        _check_ready(states, unreadable)


def _check_ready(states: Sequence[RunState], unreadable: Sequence[str]) -> None:
    """Raise ``DimosStreamsError`` unless there is a run, and all of each run is there and answers."""
    from dimos_streams.cli.bridge_client.run_status.readiness import unready

    missing = [*unreadable, *(unready(states) if states or not unreadable else ())]
    if missing:
        raise DimosStreamsError(f"not ready: {'; '.join(missing)}")


def _end(run: EndedRun) -> dict[str, Any]:
    """Return what is known of an ended run, for JSON."""
    return {**asdict(run), "run_dir": str(run.run_dir), "logs": str(run.logs)}


def _write_runs(ended: Sequence[EndedRun], states: Sequence[RunState]) -> None:
    if ended:
        rows = [
            (
                run.run_id,
                local_time(run.began_utime),
                local_time(run.ended_utime),
                shortened(run.how, _SHOWN),
                str(run.logs),
            )
            for run in ended
        ]
        write_table(("RUN", "BEGAN", "ENDED", "HOW", "LOGS"), rows)
    if not states:
        return
    from dimos_streams.cli.bridge_client.run_status.text import write_run

    for number, state in enumerate(states):
        if number or ended:
            write("")
        write_run(state)
