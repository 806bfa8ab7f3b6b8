"""The calls of a module that its own skills may end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from dimos_streams import clock
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import SkillError
from dimos_streams.skill import Call

_END_WITHIN_S = 2.0
_REPEAT_S = 0.25


class OwnCalls:
    """The calls of one module that a skill of the same module may end."""

    def __init__(self) -> None:
        self._running: dict[str, str] = {}
        self._ended = asyncio.Event()

    @contextlib.contextmanager
    def running(self, call: Call, what: str) -> Iterator[None]:
        """Count a call as running. ``what`` says what it does, for the reports of those who end it."""
        self._running[call.id] = what
        try:
            yield
        finally:
            del self._running[call.id]
            self._ended.set()

    async def end(self, by: Call, reason: str) -> list[str]:
        """Cancel all calls that run now, wait until they have ended, and return what they did.

        Raises ``SkillError`` if one does not end within a bound.
        """
        ending = dict(self._running)
        deadline = clock.monotonic() + _END_WITHIN_S
        while still := ending.keys() & self._running.keys():
            if clock.monotonic() >= deadline:
                hanging = ", ".join(sorted(ending[call_id] for call_id in still))
                raise SkillError(f"not ended within {_END_WITHIN_S:g} s: {hanging}")
            self._ended.clear()
            for call_id in sorted(still):  # again and again: the bus may lose a message
                await by.skills.cancel(call_id, reason)
            await ends_within(_REPEAT_S, self._ended.wait())
        return list(ending.values())
