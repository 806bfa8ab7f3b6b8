"""The detection of a mission in virtual time that waits for what does not come: nobody would see it wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dimos_streams import clock
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.waiting import who_waits
from dimos_streams.errors import DimosStreamsError

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch
    from dimos_streams.tool_stream.event import ToolEvent

STALLED_S = 600.0
"""Virtual seconds without an event of any call."""
_LAST_WORD = 100


class StalledError(DimosStreamsError):
    """The error if calls are open and none of them has said anything for a long time."""


class StallWatch:
    """A watch that notes when something last happened, on the clock of the loop that runs it."""

    def __init__(self) -> None:
        self._at = 0.0

    def note(self, event: ToolEvent) -> None:
        """Note that something has happened."""
        self._at = clock.monotonic()

    async def run(self, watch: EventWatch) -> None:
        """Wait until nothing has happened for long. Raises ``StalledError`` that names who waits, and where."""
        self._at = clock.monotonic()
        while (left := self._at + STALLED_S - clock.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)
        raise StalledError(_report(watch))


def _report(watch: EventWatch) -> str:
    calls = [
        f"\n  {event.skill} [{call_id}]: {shortened(event.text, _LAST_WORD)}" for call_id, event in watch.open.items()
    ]
    waiting = [
        f"\n  {line}"
        for line in who_waits(asyncio.get_running_loop())
        if line.partition(":")[2].startswith(tuple(watch.open))
    ]
    return (
        f"no call has said anything for {STALLED_S:g} s of virtual time, and the mission is not over;"
        " if that is meant, give --duration SECONDS"
        f"\nopen calls:{''.join(calls) or ' none'}\nwho waits:{''.join(waiting) or ' none of them'}"
    )
