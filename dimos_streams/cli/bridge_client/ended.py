"""Runs that have ended, as commands speak of them: the last one, and one of a name."""

from __future__ import annotations

from pathlib import Path

from dimos_streams.cli.terminal.log_files import find_run_dir
from dimos_streams.cli.terminal.named_runs import runs_called
from dimos_streams.cli.terminal.output import local_time
from dimos_streams.errors import NoRunError, UserError
from dimos_streams.runtime.ended_runs import EndedRun, ended_runs, last_to_end
from dimos_streams.runtime.registry import runs


def find_ended(selector: str) -> EndedRun | None:
    """Return the run of an id or blueprint if it has ended and none that lives is called so, or None if one lives.
    Raises ``NoRunError`` and ``UserError`` as ``find_run_dir`` does."""
    return None if runs_called(selector, runs()) else ended_in(find_run_dir(selector))


def ended_in(run_dir: Path) -> EndedRun | None:
    """Return the run of a directory, or None if it lives or is not kept."""
    return next((run for run in ended_runs() if run.run_dir == run_dir), None)


def last_ended() -> str:
    """Return which run of this machine ended last, when and how, for the end of an error; empty if none is kept."""
    ended = {run.run_dir: run for run in reversed(ended_runs())}
    return f"; the last run here, {_describe(ended[last_to_end([*ended])])}" if ended else ""


def ended_called(selector: str) -> str:
    """Return when and how the run of a name ended, for the end of an error; empty if none of those that are kept is
    called so."""
    try:
        run = ended_in(find_run_dir(selector))
    except (NoRunError, UserError):
        return ""
    return "" if run is None else f"; run {_describe(run)}"


def _describe(run: EndedRun) -> str:
    return (
        f"{run.run_id}, {end_of(run)} (`dimos-streams logs {run.run_id}` shows what it logged,"
        " `dimos-streams status --all` all that have ended)"
    )


def end_of(run: EndedRun) -> str:
    """Return when and how a run ended, for people."""
    return f"ended {local_time(run.ended_utime)}: {run.how}"
