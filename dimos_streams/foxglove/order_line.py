"""The order in which one viewer's orders are carried out: that in which they were sent, but what stops waits for
nothing that is slow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from dimos_streams.errors import SkillError

MAX_WAITING = 5
"""The largest number of one viewer's orders that are under way: of those to stop, of those to pause, and of all
others. The SDK has 512 threads, in each of which one waits, for 32 viewers."""
_WITHIN_S = 20.0
"""Seconds that an order waits for those before it."""
_UNDONE_BY: Mapping[str, str] = {"/stop": "/release", "/pause": "/resume"}
"""The orders that stop, each with the one that undoes it."""


class OrderPlace:
    """The place of an order that is under way."""

    def __init__(self, viewer: int, name: str, target: str) -> None:
        self.viewer, self.name, self.target = viewer, name, target
        self.lane = name if name in _UNDONE_BY else ""
        """The orders with which it shares a bound."""
        self.has_begun = False
        self.ended = asyncio.Event()
        self._overtaken_by = ""

    def note(self, later: OrderPlace) -> None:
        """Note an order that was sent later."""
        if self._undoes(later):
            self._overtaken_by = later.name

    def check(self) -> None:
        """Raise ``SkillError`` if an order that was sent later would be undone by this one."""
        if self._overtaken_by:
            later = self._overtaken_by
            raise SkillError(
                f"{self.name} is not carried out: {later} came after it, and is not to be undone; ask anew"
            )

    def waits_for(self, earlier: OrderPlace) -> bool:
        """Return whether an earlier order of the viewer has to end before this one begins."""
        match self.name:
            case "/stop":
                return False  # a release names the stops that it is about
            case "/pause":
                return earlier.has_begun and earlier._undoes(self)
        return True

    def _undoes(self, other: OrderPlace) -> bool:
        return _UNDONE_BY.get(other.name) == self.name and _are_nested(self.target, other.target)


class OrderLine:
    """All orders that are under way. Use from the loop only."""

    def __init__(self) -> None:
        self._places: dict[asyncio.Task[Any], OrderPlace] = {}
        """The places of orders, each carried out by a task of its own."""

    @contextlib.asynccontextmanager
    async def place(self, viewer: int, name: str, target: str) -> AsyncIterator[None]:
        """Wait for the turn of an order, and hold its place. ``target`` is the robot or the agent that it is for,
        ``""`` for any.

        Raises ``SkillError`` if too many orders are under way, those before it have no answer for long, or one that
        stops has overtaken it.
        """
        task = _own_task()
        earlier = [each for each in self._places.values() if each.viewer == viewer]
        place = OrderPlace(viewer, name, target)
        if sum(each.lane == place.lane for each in earlier) >= MAX_WAITING:
            raise SkillError(f"{MAX_WAITING} orders of this viewer have no answer yet; wait for one")
        for each in earlier:
            each.note(place)
        self._places[task] = place
        try:
            await _until_ended([each for each in earlier if place.waits_for(each)])
            place.check()
            place.has_begun = True
            yield
        finally:
            del self._places[task]
            place.ended.set()

    def check_overtaken(self) -> None:
        """Raise ``SkillError`` if an order that stops has overtaken the one that this task carries out."""
        self._places[_own_task()].check()

    async def ended(self) -> None:
        """Wait until all orders that are under way have ended."""
        await asyncio.gather(*self._places, return_exceptions=True)


def stops(name: str) -> bool:
    """Return whether an order is one that stops."""
    return name in _UNDONE_BY


def _own_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def _until_ended(places: Sequence[OrderPlace]) -> None:
    try:
        async with asyncio.timeout(_WITHIN_S):
            for each in places:
                await each.ended.wait()
    except TimeoutError as error:
        waits = next(each.name for each in places if not each.ended.is_set())
        raise SkillError(f"it is not carried out: {waits}, which came before, has had no answer for long") from error


def _are_nested(target: str, other: str) -> bool:
    """Return whether one robot or agent is the other, or in it; all are in ``""``."""
    inner, outer = (target, other) if len(target) >= len(other) else (other, target)
    return not outer or f"{inner}/".startswith(f"{outer}/")
