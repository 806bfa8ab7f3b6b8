"""The calls of a run that has ended, from its journal."""

from __future__ import annotations

from pathlib import Path

from dimos_streams.cli.bridge_client.calls.call_list import call_among
from dimos_streams.cli.bridge_client.calls.showing import show_kept
from dimos_streams.cli.bridge_client.ended import end_of
from dimos_streams.cli.bridge_client.kept_calls import kept_calls, kept_events
from dimos_streams.errors import SkillError, UserError
from dimos_streams.journal.journal import JOURNAL_FILE
from dimos_streams.runtime.ended_runs import EndedRun
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallView


def calls_of(run: EndedRun) -> list[CallView]:
    """Return the calls in the journal of a run, oldest first. Raises ``UserError`` if there is none in its directory,
    and ``DimosStreamsError`` for one that can't be read."""
    return kept_calls(_journal_of(run))


async def show_call(run: EndedRun, start: str, robot: str | None, *, as_json: bool) -> ToolEvent:
    """Show what the call has said whose id begins so, as far as the journal of a run has it; return its close.

    Raises as ``calls_of`` does, ``UserError`` for an unknown id, and ``SkillError`` for a call that was open when the
    run ended.
    """
    call = call_among(calls_of(run), start, robot, run=run.run_id)
    close = show_kept(call, kept_events(_journal_of(run), call.call_id), as_json=as_json)
    if close is None:
        raise SkillError(f"call {call.call_id} was open when run {run.run_id} {end_of(run)}")
    return close


def _journal_of(run: EndedRun) -> Path:
    path = run.run_dir / JOURNAL_FILE
    if not path.exists():
        raise UserError(
            f"run {run.run_id} has no journal in {run.run_dir}: it had no bridge, or one that did not begin or kept"
            " its journal elsewhere (`bridge.journal`)"
        )
    return path
