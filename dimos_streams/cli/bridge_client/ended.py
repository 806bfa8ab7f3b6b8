"""Runs that have ended, as commands speak of them: the last one, one of a name, and the calls in its journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.cli.terminal.log_files import find_run_dir
from dimos_streams.cli.terminal.named_runs import runs_called
from dimos_streams.cli.terminal.output import local_time
from dimos_streams.errors import NoRunError, SkillError, UserError
from dimos_streams.runtime.ended_runs import EndedRun, ended_runs
from dimos_streams.runtime.registry import runs

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent
    from dimos_streams.tool_stream.gateway import CallView


def find_ended(selector: str) -> EndedRun | None:
    """Return the run of an id or blueprint if it has ended and none that lives is called so, or None if one lives.
    Raises ``NoRunError`` and ``UserError`` as ``find_run_dir`` does."""
    return None if runs_called(selector, runs()) else ended_in(find_run_dir(selector))


def ended_in(run_dir: Path) -> EndedRun | None:
    """Return the run of a directory, or None if it lives or is not kept."""
    return next((run for run in ended_runs() if run.run_dir == run_dir), None)


def last_ended() -> str:
    """Return which run of this machine that has ended is the newest, when and how it ended, for the end of an error;
    empty if none is kept."""
    ended = ended_runs()
    return f"; the last run here, {_shown(ended[-1])}" if ended else ""


def ended_called(selector: str) -> str:
    """Return when and how the run of a name ended, for the end of an error; empty if none of those that are kept is
    called so."""
    try:
        run = ended_in(find_run_dir(selector))
    except (NoRunError, UserError):
        return ""
    return "" if run is None else f"; run {_shown(run)}"


def _shown(run: EndedRun) -> str:
    return (
        f"{run.run_id}, {end_of(run)} (`dimos-streams logs {run.run_id}` shows what it logged,"
        " `dimos-streams status --all` all that have ended)"
    )


def end_of(run: EndedRun) -> str:
    """Return when and how a run ended, for people."""
    return f"ended {local_time(run.ended_utime)}: {run.how}"


def calls_of(run: EndedRun) -> list[CallView]:
    """Return the calls in the journal of a run, oldest first. Raises ``UserError`` if there is none in its directory,
    and ``DimosStreamsError`` for one that can't be read."""
    from dimos_streams.cli.bridge_client.kept_calls import kept_calls

    return kept_calls(_journal_of(run))


async def show_call(run: EndedRun, start: str, robot: str | None, *, as_json: bool) -> ToolEvent:
    """Show what the call has said whose id begins so, as far as the journal of a run has it; return its close.

    Raises as ``calls_of`` does, ``UserError`` for an unknown id, and ``SkillError`` for a call that was open when the
    run ended.
    """
    from dimos_streams.cli.bridge_client.calls.call_list import call_among
    from dimos_streams.cli.bridge_client.calls.showing import show_kept
    from dimos_streams.cli.bridge_client.kept_calls import kept_events

    call = call_among(calls_of(run), start, robot, run=run.run_id)
    close = show_kept(call, kept_events(_journal_of(run), call.call_id), as_json=as_json)
    if close is None:
        raise SkillError(f"call {call.call_id} was open when run {run.run_id} {end_of(run)}")
    return close


def _journal_of(run: EndedRun) -> Path:
    from dimos_streams.journal.journal import JOURNAL_FILE

    path = run.run_dir / JOURNAL_FILE
    if not path.exists():
        raise UserError(
            f"run {run.run_id} has no journal in {run.run_dir}: it had no bridge, or one that did not begin or kept"
            " its journal elsewhere (`bridge.journal`)"
        )
    return path
