"""A watch that follows the events of calls and reports what becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from dimos_streams.cli.bridge_client.declarations import Declarations
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.errors import DimosStreamsError
from dimos_streams.operator.agents import is_conversation
from dimos_streams.operator.known_names import MONITOR

if TYPE_CHECKING:
    from dimos_streams.bus import Bus
    from dimos_streams.tool_stream.event import ToolEvent
    from dimos_streams.tool_stream.gateway import JournalEntry, SkillGateway

Milestone = Literal["answer", "close"]
Show = Callable[["ToolEvent"], None]

_REMEMBERED = 8192
_WHOLE = (None, "stop", "tool_calls")
"""The ways in which a model ends what it says, unless it was cut off."""


class EventWatch:
    """A watch that takes the events of calls as they come. It remembers the milestones of the newest calls only."""

    def __init__(self, show: Show) -> None:
        self.open: dict[str, ToolEvent] = {}
        """The newest event of each call that is not closed."""
        self.failure: Exception | None = None
        """The reason why no more events come; None while they do."""
        self._show = show
        self._reached: NewestEntries[tuple[str, Milestone], ToolEvent] = NewestEntries(_REMEMBERED)
        self._changed = asyncio.Event()

    def receive(self, event: ToolEvent) -> None:
        """Take the next event. Those of the monitor's reports are nobody's calls, and are ignored."""
        if event.caller == MONITOR:
            return
        self._show(event)
        if event.type == "close":
            self.open.pop(event.call_id, None)
            self._reach(event, "answer")
            self._reach(event, "close")
        elif event.type != "gap":
            self.open[event.call_id] = event
            if _answers(event):
                self._reach(event, "answer")
        self._notify()

    def fail(self, error: Exception) -> None:
        """Note that no more events will come."""
        self.failure = error
        self._notify()

    async def wait(self, call_id: str, milestone: Milestone) -> ToolEvent:
        """Return the event that answered or closed a call. Raises what ended the watch, if that comes first."""
        await self.until(lambda: self.has_reached(call_id, milestone))
        return self._reached[call_id, milestone]

    def has_reached(self, call_id: str, milestone: Milestone) -> bool:
        """Return whether a call is answered or closed, as far as this watch remembers."""
        return (call_id, milestone) in self._reached

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on this watch holds. Raises what ended the watch, if that comes first."""
        while not condition():
            if self.failure is not None:
                raise self.failure
            await self._changed.wait()

    def _reach(self, event: ToolEvent, milestone: Milestone) -> None:
        if not self.has_reached(event.call_id, milestone):
            self._reached[event.call_id, milestone] = event

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@asynccontextmanager
async def watching(
    gateway: SkillGateway, show: Show, *, after: int, call_id: str | None = None, robot: str | None = None
) -> AsyncIterator[EventWatch]:
    """Yield a watch that is fed with the events behind an offset: of one call, or of all; at a hub, of one ``robot``
    if it is given."""
    watch = EventWatch(show)
    task = asyncio.ensure_future(_feed(watch, gateway, after, call_id, robot))
    try:
        yield watch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def watching_bus(bus: Bus, show: Show) -> AsyncIterator[EventWatch]:
    """Yield a watch of what can be heard on an open bus, where there is no bridge: some events may be lost."""
    from dimos_streams.errors import MessageError
    from dimos_streams.tool_stream.protocol.channels import EVENTS
    from dimos_streams.tool_stream.wire.unpacking import unpack_event

    watch = EventWatch(show)

    def on_message(channel: str, data: bytes) -> None:
        with contextlib.suppress(MessageError):  # not ours to report: we only look on
            # Agents need a bridge, so this is of none.
            watch.receive(replace(unpack_event(data, channel), of_agent=False))

    subscription = bus.subscribe(EVENTS, on_message)
    try:
        yield watch
    finally:
        subscription.close()


async def _feed(watch: EventWatch, gateway: SkillGateway, after: int, call_id: str | None, robot: str | None) -> None:
    declarations = Declarations(gateway)
    events = cast("AsyncGenerator[JournalEntry, None]", gateway.events(after=after, call_id=call_id))
    try:
        async with contextlib.aclosing(events):
            async for journalled in events:
                if robot is None or journalled.event.robot in ("", robot):  # a gap may be of any
                    watch.receive(await declarations.marked(journalled.event))
    except Exception as error:  # for whoever waits for an event
        watch.fail(error)
    else:
        watch.fail(DimosStreamsError("the bridge has ended the stream of events"))


def _answers(event: ToolEvent) -> bool:
    """Return whether an event is the first thing that a caller hears; of an agent, that is its own text."""
    if event.type != "update":
        return False
    if not is_conversation(event):
        return True
    entry = event.data.get("entry")
    if not isinstance(entry, Mapping) or entry.get("role") != "assistant" or not entry.get("text"):
        return False
    return entry.get("finish") in _WHOLE
