"""Input for an agent that is paused: it waits until somebody resumes the agent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dimos_streams.errors import SkillError
from dimos_streams.operator.agents import note_in
from dimos_streams.operator.known_names import BEHIND_PAUSE

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch, Milestone
    from dimos_streams.tool_stream.event import ToolEvent


class AgentPausedError(SkillError):
    """Raised when what was said would wait for the end of a pause, and nobody is there who waits."""


def may_outwait(timeout_s: float | None) -> bool:
    """Return whether a command may wait for the end of a pause: for as long as it was told to, or until the person at
    its terminal has enough of it."""
    return timeout_s is not None or sys.stdin.isatty()


async def wait_unless_paused(watch: EventWatch, call_id: str, milestone: Milestone) -> ToolEvent:
    """Return the event that answered or closed a call. Raises ``AgentPausedError`` if the call waits behind a pause
    instead."""
    await watch.until(lambda: watch.has_reached(call_id, milestone) or waits_behind_pause(watch, call_id))
    if not watch.has_reached(call_id, milestone):
        raise AgentPausedError(f"agent {watch.open[call_id].module!r} is paused")
    return await watch.wait(call_id, milestone)


def waits_behind_pause(watch: EventWatch, call_id: str) -> bool:
    """Return whether the newest that a call says is that it waits for the end of a pause."""
    newest = watch.open.get(call_id)
    return newest is not None and note_in(newest).startswith(BEHIND_PAUSE)
