"""Repeated attempts of a part of the link to a hub after something went wrong."""

from __future__ import annotations

import asyncio

from dimos_streams.bridge.fleet.hub_requests import HubRefusalError, HubUnreachableError
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.client.backoff import Backoff
from dimos_streams.errors import UserError

FAILURES = (HubUnreachableError, HubRefusalError, UserError)
"""The errors that a request to a hub raises; ``UserError`` if a file of the robot's settings can't be read."""
REFUSED_WAIT_S = 30.0
"""Minimum time, in seconds, between attempts after a refusal: a token may be replaced, a hub upgraded."""


class Attempts:
    """The attempts of one part. Each failure is one of the link's ``troubles`` until the next success."""

    def __init__(self, link: LinkContext, part: str, *, initial_s: float, longest_s: float) -> None:
        """``initial_s`` and ``longest_s`` are the first and the longest pause after a hub that can't be reached, or
        a file that can't be read."""
        self._link = link
        self._part = part
        self._backoff = Backoff(link.rng, initial_s=initial_s, maximum_s=longest_s)

    async def pause_after(self, error: Exception, *, quietly: bool = False) -> None:
        """Wait until it makes sense to try again. ``quietly`` is for what is no trouble the first time."""
        if not quietly:
            self._link.troubles.begin(self._part, str(error))
        if isinstance(error, HubRefusalError):
            await asyncio.sleep(REFUSED_WAIT_S * self._link.rng.uniform(1.0, 1.5))
            return
        # The robot's own files are looked at as often as a hub that is away: a token may be written at any moment.
        asked_s = error.retry_after_s if isinstance(error, HubUnreachableError) else 0.0
        await asyncio.sleep(self._backoff.next(asked_s))

    def reset(self) -> None:
        """Note that the hub has taken something."""
        self._backoff.reset()
        self._link.troubles.end(self._part)
