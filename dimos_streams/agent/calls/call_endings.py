"""The end of the agent's calls: they are cancelled, waited for, and given up if that does not help."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from dimos_streams.agent.calls.known_calls import KnownCalls
from dimos_streams.agent.calls.open_call import OpenCall, listed, made_close
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import SkillGateway

OnGivenUp: TypeAlias = Callable[[Sequence[OpenCall]], Awaitable[str]]

GRACE_S = 0.4
"""The time in s for a call to end after its time limit; then it is given up."""
_logger = logging.getLogger(__name__)


async def nothing_to_do(calls: Sequence[OpenCall]) -> str:
    """Do nothing: for callers that need not know of calls that are given up."""
    return ""


_AT_ONCE = 32
"""Number of calls that are asked to end at the same time: over HTTP each takes a connection and a thread."""


class CallEndings:
    """Ends calls of one caller. What it still does on its own ends with ``stop``."""

    def __init__(
        self,
        gateway: SkillGateway,
        caller: str,
        known: KnownCalls,
        observe: Callable[[ToolEvent], Awaitable[None]],
        on_given_up: OnGivenUp,
    ) -> None:
        """``observe`` gets the closes of calls that are given up; see ``CallManager`` for ``on_given_up``."""
        self._gateway = gateway
        self._caller = caller
        self._known = known
        self._observe = observe
        self._on_given_up = on_given_up
        self._tasks = OwnedTasks()
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    def limit(self, call: OpenCall, time_limit_s: float | None) -> None:
        """End a call after that time, or never if it is None."""
        if time_limit_s is not None:
            call.set_timer(time_limit_s, partial(self._time_out, call, time_limit_s))

    async def cancel(self, calls: Iterable[OpenCall], reason: str) -> None:
        """Ask calls to end. One that can't be asked is logged; its end will be reported anyhow."""
        for call in tuple(calls):
            call.ask_to_end(reason)
            try:
                async with self._at_once:
                    await self._gateway.cancel(call.call_id, reason)
            except SkillError as error:
                _logger.warning("call %s of %s can't be cancelled: %s", call.call_id, call.skill, error)

    async def cancel_by_id(self, call_id: str, reason: str) -> None:
        """Ask a call to end, also one of which no event has come yet. Raises ``SkillError`` if it can't be asked."""
        if (call := self._known.get(call_id)) is not None:
            call.ask_to_end(reason)
        await self._gateway.cancel(call_id, reason)

    async def end(
        self, calls: Iterable[OpenCall], reason: str, *, bound_s: float, outcome: Outcome = Outcome.CANCELLED
    ) -> tuple[OpenCall, ...]:
        """Ask calls to end and wait for that. Those that have not ended after ``bound_s`` are given up: they close
        here with ``outcome``, whatever they go on to do, and are returned. Each call is asked, also one that is given
        up before its turn has come, and if this is cancelled."""
        ending = tuple(call for call in calls if call.close is None)
        for call in ending:
            call.ask_to_end(reason)
        waits = [asyncio.ensure_future(call.closed.wait()) for call in ending]
        for call in ending:
            self._tasks.spawn(self.cancel([call], reason), name="cancel")
        try:
            if waits:
                await asyncio.wait(waits, timeout=bound_s)
        finally:
            for wait in waits:
                wait.cancel()
        return await self.give_up((call for call in ending if call.close is None), reason, outcome)

    def end_soon(self, calls: Iterable[OpenCall], reason: str, *, bound_s: float) -> None:
        """Start ``end`` without waiting for it."""
        self._tasks.spawn(self.end(tuple(calls), reason, bound_s=bound_s), name="end")

    async def give_up(
        self, calls: Iterable[OpenCall], reason: str, outcome: Outcome = Outcome.CANCELLED
    ) -> tuple[OpenCall, ...]:
        """Stop waiting for the end of calls that were asked to end: they close here, whatever they go on to do.
        Return those that have not ended meanwhile.

        Every call that is given up passes here, for whatever reason it was to end.
        """
        calls = tuple(calls)
        if not calls:
            return ()
        for call in calls:
            _logger.error("call %s of %s did not end when it was asked to (%s)", call.call_id, call.skill, reason)
        done = await self._on_given_up(calls)
        calls = tuple(call for call in calls if call.close is None)
        for call in calls:
            may_run = "; ".join(part for part in ("may still run", done) if part)
            for mission in call.missions:
                mission.leave(f"{listed([call])} {may_run}")
            self._known.memory.remember_given_up(call)
            text = f"{reason}; it did not end when it was cancelled and {may_run}"
            await self._observe(made_close(call, self._caller, outcome, text))
        return calls

    async def stop(self) -> None:
        """End the tasks of its own; the calls themselves go on. Twice is fine."""
        await self._tasks.end()

    def _time_out(self, call: OpenCall, limit_s: float) -> None:
        if call.close is None:
            reason = f"it ran longer than {limit_s:g} s"
            self._tasks.spawn(self.end([call], reason, bound_s=GRACE_S, outcome=Outcome.TIMED_OUT), name="time out")
