"""A call that a test has made, with the events that came of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from dimos_streams.errors import SkillError
from dimos_streams.testing.patterns import EventPattern
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.close_data import MISFIT, UNAWAITED


class HarnessCall:
    """A call that a test made."""

    def __init__(self, call_id: str, skill: str, cancel: Callable[[str], None]) -> None:
        self.id = call_id
        self.skill = skill
        self.events: list[ToolEvent] = []
        """The call's events so far, in order."""
        self._cancel = cancel
        self._changed = asyncio.Event()

    async def wait_for(
        self, condition: EventPattern | Callable[[ToolEvent], bool], timeout_s: float = 30.0
    ) -> ToolEvent:
        """Return the first event, past ones included, that fits a pattern or for which a function is true.

        Raises ``TimeoutError``, which shows the events, after ``timeout_s`` of the loop's time.
        """
        fits = condition.fits if isinstance(condition, EventPattern) else condition
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                return await self._first(fits)
        came = "; ".join(f"{event.type} {event.text!r}" for event in self.events) or "none"
        text = f"the call of {self.skill!r} had no event that was waited for within {timeout_s:g} s of its time"
        raise TimeoutError(f"{text} (timeout_s={timeout_s:g} sets that; events so far: {came})")

    async def _first(self, condition: Callable[[ToolEvent], bool]) -> ToolEvent:
        while True:
            for event in self.events:
                if condition(event):
                    return event
            self._changed.clear()
            await self._changed.wait()

    async def answer(self, timeout_s: float = 30.0) -> str:
        """The text that answered: of the first update, or of the close. Raises ``SkillError`` if the call failed, and
        for mistakes of the skill's author as ``result`` does."""
        event = await self.wait_for(lambda event: event.type in ("update", "close"), timeout_s)
        if event.outcome not in (None, Outcome.COMPLETED):
            raise SkillError(event.text)
        _check_author(event)
        return event.text

    async def closed(self, timeout_s: float = 30.0) -> ToolEvent:
        """Wait for the close and return it, whatever the outcome."""
        return await self.wait_for(lambda event: event.type == "close", timeout_s)

    async def result(self, timeout_s: float = 30.0) -> Any:
        """The value that the skill returned, as JSON. For another outcome raises ``SkillError`` with the close's
        text, and what there is of a result; raises ``TypeError`` for a value that the skill does not declare, and
        ``RuntimeWarning`` if it did not await what it was to, which leaving the harness raises, too."""
        event = await self.closed(timeout_s)
        if event.outcome is not Outcome.COMPLETED:
            raise SkillError(event.text, result=event.data.get("result"))
        _check_author(event)
        return event.data.get("result")

    def texts(self, type: str) -> list[str]:
        """The texts of all events of one type so far. Raises ``UserError`` for a type that no event has."""
        return [event.text for event in filter(EventPattern(type=type).fits, self.events)]

    def cancel(self, reason: str = "the test wants it") -> None:
        """Ask the call to end."""
        self._cancel(reason)

    def add(self, event: ToolEvent) -> None:
        """Take an event; for the harness."""
        self.events.append(event)
        self._changed.set()


def _check_author(event: ToolEvent) -> None:
    check_awaited([event])
    misfit = event.data.get(MISFIT)
    if misfit is not None:
        raise TypeError(misfit)


def check_awaited(events: Iterable[ToolEvent]) -> None:
    """Raise ``RuntimeWarning`` for what the skills of some events did not await."""
    for event in events:
        if UNAWAITED in event.data and event.type == "close":
            raise RuntimeWarning(event.data[UNAWAITED])
