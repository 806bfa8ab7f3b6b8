"""The requests of a robot to a hub, whatever the way to it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from dimos_streams.errors import DimosStreamsError
from dimos_streams.fleet.batches import Position
from dimos_streams.fleet.commands import Answer, Command, Hello
from dimos_streams.fleet.reports import Reported, RobotReport


class HubUnreachableError(DimosStreamsError):
    """Raised if the hub can't be reached, or can't take anything now; ``retry_after_s`` is what it asks for."""

    def __init__(self, problem: str, retry_after_s: float = 0.0) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(problem)


class HubRefusalError(DimosStreamsError):
    """Raised if the hub does not take a request, and will not take it unchanged."""

    def __init__(self, problem: str, kind: str = "", offset: int | None = None) -> None:
        self.kind = kind
        """The end of the problem's type; empty for an answer that is not a hub's."""
        self.offset = offset
        """The offset that the refusal is about, or up to which all is stored."""
        super().__init__(problem)


class HubRequests(Protocol):
    """A hub, as one robot sees it. All methods raise ``HubUnreachableError`` and ``HubRefusalError``."""

    async def position(self, journal_id: str) -> Position:
        """The position up to which the hub has stored a journal."""

    async def ship(self, batch: bytes) -> Position:
        """Hand over a ``Batch``."""

    async def report(self, report: RobotReport) -> Reported:
        """Report the state of the robot."""

    async def answer(self, answer: Answer) -> None:
        """Say what became of a command."""

    def commands(self) -> AsyncGenerator[Hello | Command, None]:
        """Ask for one stream of commands, and yield those of no other one. It never ends normally: its end is an
        error."""
