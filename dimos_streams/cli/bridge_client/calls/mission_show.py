"""The selection of the events that belong to one mission, among those of all calls of a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dimos_streams.cli.terminal.output import note
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.operator.agents import is_conversation, is_look
from dimos_streams.tool_stream.family import asked_by

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.calls.event_watch import Show
    from dimos_streams.tool_stream.event import ToolEvent


_REMEMBERED = 1000
"""Number of calls that are over of which the agent may still speak."""


class MissionShow:
    """Shows what belongs to one mission: what its agent says of it, the calls that the agent has begun since, with
    those that they lead to, those that the agent names, and the ends of the agent's earlier calls.

    Events don't say to which mission a call belongs. So if one agent has several missions at the same time, the calls
    of all are shown for each. The first time that a call of somebody else says something meanwhile, a line on
    standard error names the command that shows it.
    """

    def __init__(self, show: Show, mission: str, *, bridge: str = "") -> None:
        """``bridge`` has the options that name the bridge, as typed behind a command."""
        self._show = show
        self._mission = mission
        self._bridge = bridge
        self._calls = {mission}
        """The mission's call, and the open ones of those that belong to it."""
        self._over = NewestEntries[str, None](_REMEMBERED)
        self._agent = ("", "")
        """The robot and the module of the agent, as far as the mission has said anything."""
        self._is_noted = False

    def __call__(self, event: ToolEvent) -> None:
        """Show an event if it belongs to the mission; a gap may."""
        if event.type == "gap" or self._belongs(event):
            self._show(event)
        elif event.type in ("update", "progress") and not (
            self._is_noted or is_look(event) or is_conversation(event)
        ):
            self._is_noted = True
            follow = f"dimos-streams follow {shlex.quote(event.call_id)}{self._bridge}"
            note(
                f"{event.skill} of {event.caller!r} goes on beside it: `{follow}` shows it,"
                f" `dimos-streams calls{self._bridge}` lists all"
            )

    def _belongs(self, event: ToolEvent) -> bool:
        if event.call_id == self._mission:
            self._agent = (event.robot, event.module)
            entry = event.data.get("entry")
            named = entry.get("call_id") if isinstance(entry, Mapping) else None
            if isinstance(named, str) and named and named not in self._over:
                self._calls.add(named)
            return True
        is_agents = (event.robot, event.caller) == self._agent
        if event.type == "open" and (is_agents or asked_by(event.call_id) in self._calls):
            self._calls.add(event.call_id)
        belongs = event.call_id in self._calls or (is_agents and event.type == "close")
        if event.type == "close":
            self._calls.discard(event.call_id)
            self._over[event.call_id] = None
        return belongs
