"""The show of the events of a call that is followed, also where the bridge does not keep them any more."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import replace

from dimos_streams import clock
from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch, Show
from dimos_streams.cli.terminal.approval_text import note_for_operators
from dimos_streams.cli.terminal.output import hanging_indent, note, note_lines, notes_width
from dimos_streams.cli.terminal.reporter import Reporter, create_reporter
from dimos_streams.operator.agents import is_conversation
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import CallView

_KEPT_S = 3.0
"""Time, in seconds, in which a bridge sends the close of a call that has ended, if it still has it."""


def show_with(reporter: Reporter, call_id: str, *, as_json: bool) -> Show:
    """Show events with a reporter; and on standard error a decision or an answer that a call waits for, with the
    command that gives it, and what may become of a mission whose call is lost."""

    def show(event: ToolEvent) -> None:
        waits = note_for_operators(event) if event.call_id == call_id else ""
        if waits:
            note_lines(hanging_indent(f"{event.module}: {waits}", notes_width()))
        if as_json or not waits:
            reporter.tool_event(event)
        if event.call_id == call_id and (left := mission_left(event)):
            note(left)

    return show


def mission_left(event: ToolEvent) -> str:
    """Return what people have to know of a mission whose call is closed as lost by this event; empty for any other.

    An agent that is restarted goes on with it, without the call. A mission has the id of the call that began it.
    """
    if event.outcome != "lost" or not is_conversation(event):
        return ""
    missions = f"dimos-streams missions {shlex.quote(event.call_id)}"
    return (
        f"agent {event.module!r} goes on with this mission if it is restarted: `{missions}` on its machine shows what"
        " becomes of it, `dimos-streams monitor` what the agent does, and `dimos-streams say stop` ends it"
    )


def without_needless_gaps(show: Show) -> Show:
    """Show what comes, but for a gap before the first event of a call: what is gone there was of other calls."""
    held: list[ToolEvent] = []

    def show_next(event: ToolEvent) -> None:
        if event.type == "gap" and not event.call_id:
            held.append(event)
            return
        for gap in held if event.type != "open" else ():
            show(replace(gap, utime=event.utime))  # its own is that of the request
        held.clear()
        show(event)

    return show_next


async def show_end(watch: EventWatch, closed: CallView) -> None:
    """Wait for the close of a call that has ended; what the bridge remembers stands for one that it does not keep."""
    try:
        async with asyncio.timeout(_KEPT_S):
            await watch.wait(closed.call_id, "close")
    except TimeoutError:
        watch.receive(_remembered_close(closed))


def show_kept(call: CallView, events: Sequence[ToolEvent], *, as_json: bool) -> ToolEvent | None:
    """Show what is kept of a call of a run that has ended. Return its close, or what is remembered of it; None if the
    call was open then."""
    with contextlib.closing(create_reporter(as_json=as_json, with_data=True)) as reporter:
        if not events or events[0].seq > 1:
            note(f"the first events of call {call.call_id} are not kept any more")
        for event in events:
            reporter.tool_event(event)
        if call.state != "closed":
            return None
        if events and events[-1].type == "close":
            return events[-1]
        close = _remembered_close(call)
        reporter.tool_event(close)
        return close


def _remembered_close(view: CallView) -> ToolEvent:
    note(f"the last events of call {view.call_id} are not kept any more; this is how it ended")
    return _close_of(view)


def _close_of(view: CallView) -> ToolEvent:
    return ToolEvent(
        utime=view.closed_utime or clock.utime(),
        call_id=view.call_id,
        seq=max(1, view.last_seq),
        type="close",
        module=view.module,
        skill=view.skill,
        caller=view.caller,
        text=view.text,
        data=view.close_data(),
        robot=view.robot or "",
    )
