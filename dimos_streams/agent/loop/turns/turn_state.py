"""The state of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from dimos_streams.agent.missions.mission import Mission, ids
from dimos_streams.agent.models.protocol import ToolSchema
from dimos_streams.agent.record.agent_events import Emit
from dimos_streams.agent.record.kind import Kind, P


class TurnState:
    """The state of one turn, as all that works in it sees it."""

    def __init__(self, id: str, missions: tuple[Mission, ...], heard: Collection[Mission], emit: Emit) -> None:
        """``heard`` are the missions whose input is new to the model."""
        self.id = id
        self.missions = missions
        self.heard = heard
        self.iteration = 0
        self.text = ""
        """The newest text of the model."""
        self.tools: tuple[ToolSchema, ...] = ()
        """The tools that the model was offered last."""
        self.stale = False
        """True if input was withdrawn since the model was asked."""
        self.interruption = ""
        """The reason it was ended from outside; empty if it was not."""
        self.finished = False
        """True once its record is whole: what still runs, because it swallowed its cancellation, adds nothing."""
        self._emit = emit

    @property
    def failing(self) -> Collection[Mission]:
        """The missions whose calls fail here: those whose input was heard in this turn, or all if there are none."""
        return self.heard or self.missions

    def emit(self, kind: Kind[P, Any], *phase: P.args, **data: P.kwargs) -> None:
        """Log an event of the turn's missions."""
        self._emit(kind, ids(self.missions), *phase, **data)

    def check_going_on(self) -> None:
        """Raise ``CancelledError`` once more if the turn was interrupted, and somebody has swallowed the first."""
        if self.interruption:
            raise asyncio.CancelledError
