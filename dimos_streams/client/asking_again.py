"""Requests that are made again if their answer is lost on the way, as that of a bridge that was killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dimos_streams import clock
from dimos_streams.errors import (
    CallInDoubtError,
    NoAnswerError,
    SkillUnavailableError,
    UnknownAgentError,
    UnknownRobotError,
    UnknownSkillError,
)

T = TypeVar("T")

_ASK_AGAIN_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""The pauses, in seconds, before the bridge is asked again: one that was killed is back by then."""
_GIVE_UP_S = 60.0
"""Time, in seconds, after which no request is made again: one that nobody answers takes as long as its timeout."""
_NOT_YET = (SkillUnavailableError, UnknownAgentError, UnknownSkillError)
"""The refusals of a bridge that is back and has not heard all modules."""


UNKNOWN = "nobody knows whether it was carried out"
IN_DOUBT = f"{UNKNOWN}: `dimos-streams calls` shows what became of it"
"""The notes for a person who has asked for something."""


async def ask_until_answered(
    ask: Callable[[], Awaitable[T]], in_doubt: str, *, arrived: bool = False, still: Callable[[], bool] = lambda: True
) -> T:
    """Return the answer to a request; if it is lost, ask again. To ask twice must do nothing more: a new call must
    have an idempotency key. ``arrived`` is True if a request before this one has shown that the bridge is there.
    ``still`` returns whether what was asked for may be asked for again.

    Raises ``NoAnswerError`` if the request certainly has not arrived, and ``CallInDoubtError`` with the text
    ``in_doubt`` if nobody says what became of it.
    """
    lost: SkillUnavailableError | UnknownAgentError | UnknownSkillError | None = None
    until = clock.monotonic() + _GIVE_UP_S
    for wait_s in (*_ASK_AGAIN_S, None):
        try:
            return await ask()
        except _NOT_YET as error:
            if lost is None and not arrived and not (isinstance(error, NoAnswerError) and error.may_have_arrived):
                raise
            lost = error
        if wait_s is None or clock.monotonic() >= until:
            break
        await asyncio.sleep(wait_s)
        if not still():
            break
    raise CallInDoubtError(f"{lost}; {in_doubt}") from lost


async def stop_until_answered(
    stop: Callable[[float], Awaitable[T]],
    within_s: float,
    not_yet: type[Exception],
    *,
    comes: Callable[[Exception], bool] = lambda error: False,
) -> T:
    """Return the answer to an order to stop, which is given with the seconds that are left for it. If the answer is
    lost, give it again: the next bridge may not have it, and to stop twice does no harm.

    Once it was lost, ``not_yet`` says that the next bridge is not there yet, and ``UnknownRobotError`` that it has
    not heard the robot yet. Before that, ``comes`` says of such an error whether it is that of a bridge that is
    being restarted. Raises what ``stop`` raises, and ``CallInDoubtError`` if an answer was lost and nobody has
    answered in time.
    """
    lost: CallInDoubtError | None = None
    missing: Exception | None = None
    until = clock.monotonic() + within_s
    for wait_s in (*_ASK_AGAIN_S, None):
        try:
            return await stop(until - clock.monotonic())
        except CallInDoubtError as error:
            lost = error
        except (not_yet, UnknownRobotError) as error:
            is_back = missing is not None and isinstance(error, UnknownRobotError)
            if lost is None and not is_back and not comes(error):
                raise
            missing = error
        if wait_s is None or clock.monotonic() + wait_s >= until:
            break
        await asyncio.sleep(wait_s)
    unanswered = lost or missing
    assert unanswered is not None
    raise unanswered
