"""Ends calls on somebody's order, many at a time, and says which of them have ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable

from dimos_streams import clock
from dimos_streams.bridge.calls.authority import by_model
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.sending.call_sender import CallSender
from dimos_streams.bridge.calls.state.call_state import CANCEL_OVERDUE_S, CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.bridge.calls.stops.overruling import overrule, overrule_all
from dimos_streams.bridge.calls.stops.stop_state import is_of
from dimos_streams.operator.messages.stop import CancelReport, GoingOn

_AT_ONCE = 50
"""Number of calls that are asked to end before others have their turn on the loop."""


class Cancels:
    """Asks calls to end and gives them time for it. It holds no robot. Use from the bus's loop only."""

    def __init__(self, ledger: Ledger, sender: CallSender, check_known: Callable[[str], Awaitable[None]]) -> None:
        """``check_known`` raises ``UnknownRobotError`` for what is no robot."""
        self._ledger = ledger
        self._sender = sender
        self._check_known = check_known

    async def cancel(
        self, call_ids: Iterable[str], reason: str, *, within_s: float = CANCEL_OVERDUE_S
    ) -> CancelReport:
        """Ask calls to end, and give them ``within_s``; those that are not known any more have ended."""
        calls = [call for call_id in call_ids if (call := self._ledger.calls.get(call_id)) is not None]
        for number, call in enumerate(calls, 1):
            self._sender.order_end(call, reason)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)  # holds and heartbeats do not wait for a crowd
        return await wait_for_ends(calls, within_s)

    async def cancel_all(self, robot: str, reason: str, *, within_s: float = CANCEL_OVERDUE_S) -> CancelReport:
        """Ask every call to end, or those of one robot's modules, missions among them; whoever may begin calls may
        begin others. Raises ``UnknownRobotError``."""
        await self._check_known(robot)
        overrule_all(self._ledger, "cancel", robot)
        calls = [call for call in self._ledger.calls.open if call.journalled and is_of(call.module, robot)]
        reason = reason or "an operator ends all calls"
        return await self.cancel([call.call_id for call in calls], reason, within_s=within_s)

    async def cancel_for_model(self, call_ids: Iterable[str], reason: str, caller: str) -> CancelReport:
        """Ask calls to end that a model wants to end. No call of this caller that waits begins any more, nor does a
        motion that another model has asked for."""
        for call in self._ledger.waiting.values():
            if by_model(call):
                overrule(call, "cancel" if call.caller == caller else "motion", "")
        return await self.cancel(call_ids, reason)

    def lingering(self) -> list[GoingOn]:
        """Calls that were asked to end and go on all the same, for longer than ``CANCEL_OVERDUE_S``."""
        return [_going_on(call) for call in self._ledger.calls.open if call.journalled and call.lingers()]


async def wait_for_ends(calls: Collection[CallState], within_s: float = CANCEL_OVERDUE_S) -> CancelReport:
    """Give calls that were asked to end their time, and report which of them have ended."""
    if calls:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                for call in calls:
                    await call.closed.wait()
    return CancelReport(
        ended=tuple(call.call_id for call in calls if call.state == CLOSED),
        going_on=tuple(_going_on(call) for call in calls if call.state != CLOSED),
    )


def going_on(call: CallState, since_utime: int) -> GoingOn:
    """A call that was asked to end at that time, and has not."""
    return GoingOn(
        call_id=call.call_id, skill=call.skill, module=call.module, since_utime=since_utime, text=call.text[:500]
    )


def _going_on(call: CallState) -> GoingOn:
    return going_on(call, call.cancel.utime if call.cancel is not None else clock.utime())
