"""Calls that wait for a lease, and do not begin after the command that asked for them has been ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dimos_streams import clock
from dimos_streams.cli.system.async_runner import finish
from dimos_streams.cli.terminal.output import note
from dimos_streams.client.asking_again import IN_DOUBT, ask_until_answered
from dimos_streams.errors import CallInDoubtError, CallRejectedError, SkillError

if TYPE_CHECKING:
    from dimos_streams.client.http_gateway import Begun

_AT_A_TIME_S = 1.0
"""The longest wait, in seconds, that the bridge is asked for at once. If this command is killed, the bridge may begin
the call for as long, though nobody wants it any more."""
_LEFT_S = 3.0
"""Time, in seconds, for which a command that was told to end waits until the bridge says whether the call has
begun."""


async def begin_in_turn(
    ask: Callable[[float], Awaitable[Begun]], cancel: Callable[[str], Awaitable[None]], lease_wait_s: float
) -> Begun:
    """Begin a call as soon as no other one holds what it needs, if that is within ``lease_wait_s``.

    ``ask`` gets a number of seconds, and has the bridge begin it after waiting for that time at most; ``cancel`` ends
    a call by its id. If we are cancelled, a call that begins all the same is ended. Raises as ``ask`` does.
    """
    until = clock.monotonic() + lease_wait_s
    wait_s = 0.0
    while True:
        asked = asyncio.ensure_future(ask(wait_s))
        try:
            return await asyncio.shield(asked)
        except CallRejectedError as error:
            left_s = until - clock.monotonic()
            if not error.resource or left_s <= 0.0:
                raise
            if wait_s == 0.0:
                note(f"{error}; waiting for it, {lease_wait_s:g} s at most")
            wait_s = min(left_s, _AT_A_TIME_S)
        except asyncio.CancelledError:
            await finish(_take_back(asked, cancel))
            raise


async def _take_back(asked: asyncio.Future[Begun], cancel: Callable[[str], Awaitable[None]]) -> None:
    """End the call that was asked for, if it has begun."""
    try:
        begun = await asyncio.wait_for(asked, _LEFT_S)
    except (TimeoutError, CallInDoubtError):
        note("the bridge has not said whether the call begins: `dimos-streams calls` shows it")
    except SkillError:
        return  # it has not begun
    else:
        note(f"call {begun.call_id} has begun meanwhile, and is cancelled")
        await ask_until_answered(lambda: cancel(begun.call_id), IN_DOUBT)
