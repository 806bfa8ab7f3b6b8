"""A turn as what runs the calls of its model sees it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.models.protocol import ToolSchema


class AskingTurn(Protocol):
    """The turn whose model has asked for calls."""

    @property
    def id(self) -> str: ...

    @property
    def missions(self) -> tuple[Mission, ...]: ...

    @property
    def failing(self) -> Collection[Mission]:
        """The missions whose calls fail here."""

    @property
    def iteration(self) -> int: ...

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        """The tools that the model was offered last."""

    @property
    def stale(self) -> bool:
        """True if input was withdrawn since the model was asked."""

    @property
    def finished(self) -> bool:
        """True once its record is whole: nothing is added any more."""

    def emit(self, kind: str, **data: Any) -> None:
        """Log an event of the turn's missions."""

    def check_going_on(self) -> None:
        """Raise ``CancelledError`` if the turn was interrupted."""
