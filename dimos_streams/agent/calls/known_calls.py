"""The calls of one caller that are known: those that are open, and the memory of those that are not."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from dimos_streams import clock
from dimos_streams.agent.calls.call_memory import CallMemory, ClosedCall
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.missions.mission import release_all, retain_all
from dimos_streams.common.tasks import ends_within
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.family import head_of_family

KnownCall: TypeAlias = OpenCall | ClosedCall
_LOOK_S = 0.02


class KnownCalls:
    """Finds the calls of one caller by their ids. An open call is work of its missions."""

    def __init__(self) -> None:
        self.memory = CallMemory()
        self._open: dict[str, OpenCall] = {}

    @property
    def open(self) -> tuple[OpenCall, ...]:
        """The calls that have not closed, in the order in which they became known."""
        return tuple(self._open.values())

    @property
    def may_run(self) -> tuple[OpenCall, ...]:
        """The open calls, and those that were given up and whose end has not been reported."""
        return (*self.open, *self.memory.given_up)

    def get(self, call_id: str) -> OpenCall | None:
        """The open call of that id, or None if it is not known or has closed."""
        return self._open.get(call_id)

    def asking(self, parent: str) -> KnownCall | None:
        """The call, open or closed, that has begun others as ``parent``; None if it is not known."""
        head = head_of_family(parent)
        return self._open.get(head) or self.memory.closed(head)

    def add(self, call: OpenCall) -> OpenCall:
        """Add an open call."""
        retain_all(call.missions)
        self._open[call.call_id] = call
        return call

    def close(self, call: OpenCall, close: ToolEvent) -> None:
        """Note that an open call has closed."""
        del self._open[call.call_id]
        call.note_closed(close)
        self.memory.remember_closed(call)
        release_all(call.missions)

    async def find(self, call_id: str, within_s: float) -> OpenCall | None:
        """Return an open call, or the open call that a child belongs to; wait up to ``within_s`` for one that is not
        known yet. None if it has closed or does not become known."""
        call_id = head_of_family(call_id)
        deadline = clock.monotonic() + within_s
        while (call := self._open.get(call_id)) is None and self.memory.closed(call_id) is None:
            if clock.monotonic() >= deadline:
                break
            await asyncio.sleep(_LOOK_S)
        return call

    async def wait_closed(self, call_id: str, within_s: float) -> None:
        """Wait until the call of that id has closed, for ``within_s`` at most; for so long also if nothing has come
        of it yet."""
        if self.memory.closed(call_id) is not None:
            return
        call = self._open.get(call_id)
        closed = asyncio.Event() if call is None else call.closed
        await ends_within(within_s, closed.wait())
