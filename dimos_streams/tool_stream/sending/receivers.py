"""Who acknowledges tool streams: a publisher's view of the receivers on its bus."""

from __future__ import annotations

from collections import OrderedDict

from dimos_streams import clock

RECEIVER_GONE_S = 2.0
"""A receiver that acknowledged nothing for so long is not waited for any more."""
RECEIVER_FORGOTTEN_S = 30.0
"""Beside another receiver, events are kept for so long for one that is gone: it may come back."""
MAX_RECEIVERS = 8


class Receivers:
    """Names, and when each was heard of; at most 8, then the one silent for longest is forgotten."""

    def __init__(self) -> None:
        self._heard: OrderedDict[str, float] = OrderedDict()

    def heard(self, name: str) -> None:
        """A receiver acknowledged something just now."""
        self._heard[name] = clock.monotonic()
        self._heard.move_to_end(name)
        if len(self._heard) > MAX_RECEIVERS:
            self._heard.popitem(last=False)

    def alive(self) -> list[str]:
        """Those that acknowledged something lately."""
        return self._since(clock.monotonic() - RECEIVER_GONE_S)

    def known(self) -> list[str]:
        """Those that events are kept for. One alone is never forgotten."""
        while len(self._heard) > 1 and next(iter(self._heard.values())) < clock.monotonic() - RECEIVER_FORGOTTEN_S:
            self._heard.popitem(last=False)
        return list(self._heard)

    def _since(self, time: float) -> list[str]:
        return [name for name, heard in self._heard.items() if heard > time]
