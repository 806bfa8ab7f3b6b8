"""A hub within the process that keeps the protocol: what robots ship, and what goes wrong on the way, by request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from dimos_streams import clock
from dimos_streams.bridge.fleet.hub_requests import HubRefusalError, HubUnreachableError
from dimos_streams.fleet.batches import Batch, Position, ShippedGap
from dimos_streams.fleet.commands import Answer, Command, Hello
from dimos_streams.fleet.protocol import FLEET_CONFLICT, FLEET_POSITION, PROTOCOL
from dimos_streams.fleet.reports import Reported, RobotReport


@dataclass
class FakeHub:
    """A ``HubRequests`` of one robot."""

    journals: dict[str, dict[int, str]] = field(default_factory=dict)
    """By journal and offset: texts of events, and ``"gap"`` for each offset that is in one."""
    batches: list[Batch] = field(default_factory=list)
    """Those that were taken."""
    attempts: int = 0
    before: Callable[[], None] = lambda: None
    """Called before each request is looked at; may raise."""
    after: Callable[[], None] = lambda: None
    """Called when a batch is stored, before it is acknowledged; may raise."""
    delay_s: float = 0.0
    wait_s: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    fails_on: set[int] = field(default_factory=set)
    """The commands whose answers make it fail."""
    reports: list[RobotReport] = field(default_factory=list)
    held_up_s: float = 0.0
    """How long each message of the stream of commands is under way."""
    streams: int = 0
    protocol: int = PROTOCOL
    _commands: list[Command] = field(default_factory=list)
    _stream: asyncio.Queue[Command | None] | None = None
    _asked_at: float = 0.0

    def stored(self, journal: str) -> list[tuple[int, str]]:
        return sorted(self.journals.get(journal, {}).items())

    def acknowledged(self, journal: str) -> int:
        return max(self.journals.get(journal, {0: ""}))

    async def position(self, journal_id: str) -> Position:
        await self._request()
        return self._position(journal_id)

    async def ship(self, batch: bytes) -> Position:
        await self._request()
        parsed = Batch.model_validate_json(batch)
        kept = self.journals.get(parsed.journal, {})
        first = parsed.entries[0].offset
        if kept and first > max(kept) + 1:
            raise HubRefusalError("too far", FLEET_POSITION, max(kept))
        new = dict(kept)
        for entry in parsed.entries:
            is_gap = isinstance(entry, ShippedGap)
            last = entry.to_offset if isinstance(entry, ShippedGap) else entry.offset
            for offset in range(entry.offset, min(last, entry.offset + 100_000) + 1):
                text = "gap" if isinstance(entry, ShippedGap) else str(entry.event["text"])
                if not is_gap and new.get(offset, text) != text:
                    raise HubRefusalError("another one is there", FLEET_CONFLICT, offset)
                new.setdefault(offset, text)
        self.journals[parsed.journal] = new
        self.after()
        self.batches.append(parsed)
        return self._position(parsed.journal)

    async def report(self, report: RobotReport) -> Reported:
        await self._request()
        self.reports.append(report)
        return Reported(version="hub", wants_skills=len(self.reports) == 1 and report.skills is None)

    async def answer(self, answer: Answer) -> None:
        await self._request()
        if answer.id in self.fails_on:
            raise HubUnreachableError("HTTP 500")
        self.answers.append(answer)

    async def commands(self) -> AsyncGenerator[Hello | Command, None]:
        await self._request()
        self._asked_at = clock.steady()
        self.streams += 1
        stream = self._stream = asyncio.Queue()
        for command in self._commands:
            stream.put_nowait(command)
        yield Hello(version="hub", hub="h", robot="robot1", protocol=self.protocol)
        while (given := await stream.get()) is not None:
            await asyncio.sleep(self.held_up_s)
            yield given
        raise HubUnreachableError("the stream was cut")

    def command(self, id: int, path: str, *, within_s: float = 10.0, **more: object) -> None:
        """Give a command; ``forget`` it, or it is sent again on the next stream."""
        fields = {"key": f"k{id}", "asked_by": "me", "role": "operator", "method": "POST", **more}
        expires_at_s = clock.steady() - self._asked_at + within_s
        command = Command.model_validate(
            {"id": id, "path": path, "stream": "the-one-there-is", "expires_at_s": expires_at_s, **fields}
        )
        self._commands.append(command)
        if self._stream is not None:
            self._stream.put_nowait(command)

    def forget(self) -> None:
        self._commands.clear()

    def cut(self) -> None:
        """End the stream of commands."""
        if self._stream is not None:
            self._stream.put_nowait(None)

    def _position(self, journal: str) -> Position:
        return Position(version="hub", journal=journal, acknowledged=self.acknowledged(journal), wait_s=self.wait_s)

    async def _request(self) -> None:
        self.attempts += 1
        await asyncio.sleep(self.delay_s)
        self.before()
