"""The receivers that acknowledge tool streams, as a publisher sees them on its bus."""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.common.newest_entries import NewestEntries

RECEIVER_GONE_S = 2.0
"""The time, in seconds, after which a receiver that acknowledged nothing is not waited for any more."""
RECEIVER_FORGOTTEN_S = 30.0
"""The time, in seconds, for which events are kept, beside another receiver, for a gone one: it may come back."""
MAX_RECEIVERS = 8


class Receivers:
    """The names of receivers, each with the time at which it was last heard; of more than 8 the one silent for
    longest is forgotten."""

    def __init__(self) -> None:
        self._heard = NewestEntries[str, float](MAX_RECEIVERS)

    def heard(self, name: str) -> None:
        """Note that a receiver acknowledged something just now."""
        self._heard[name] = clock.monotonic()

    def alive(self) -> list[str]:
        """Return the receivers that acknowledged something lately."""
        since = clock.monotonic() - RECEIVER_GONE_S
        return [name for name, heard in self._heard.items() if heard > since]

    def known(self) -> list[str]:
        """Return the receivers for which events are kept. The only one is never forgotten."""
        while len(self._heard) > 1 and next(iter(self._heard.values())) < clock.monotonic() - RECEIVER_FORGOTTEN_S:
            self._heard.popitem(last=False)
        return list(self._heard)
