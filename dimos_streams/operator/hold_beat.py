"""A hold as its source keeps it up: it is repeated while it lasts, and so is its end, because messages get lost.

Whoever holds robots has one ``HoldBeat``, and brings two things: the channels of the gates, and for what it holds
on each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import ends_within
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.operator.holding import HOLD_PERIOD_S, MAX_VALID_S, RELEASES

_log = LimitedLog(logging.getLogger(__name__))


class HoldBeat:
    """The hold of one source, on as many channels as it likes. Use from one loop only."""

    def __init__(self, source: str, *, reason: str = "") -> None:
        """``reason`` is said by the end of a hold, and by a hold that has none of its own."""
        self._source = source
        self._reason = reason
        self._seq = 0
        self._held_on: set[str] = set()
        self._releasing: dict[str, int] = {}
        """The number of times that the end of the hold is still to be sent, by channel."""
        self._changed = asyncio.Event()

    @property
    def releasing(self) -> bool:
        """True if the end of a hold is still to be sent."""
        return bool(self._releasing)

    def message(self, holding: bool, reason: str = "") -> Hold:
        """The next message to gates."""
        self._seq += 1
        return Hold(
            utime=clock.utime(),
            source=self._source,
            seq=self._seq,
            hold=holding,
            valid_s=MAX_VALID_S,
            reason=reason or self._reason,
        )

    def release(self, channels: Iterable[str]) -> None:
        """Send the end of the hold with the next rounds."""
        self._releasing.update(dict.fromkeys(channels, RELEASES))

    def send(self, publish: Callable[[str, Hold], None], reasons: Mapping[str, str]) -> None:
        """Send one round, by channel: hold on the channels that have a reason, be it empty, and release all others.
        Where a message can't be sent the error is logged; the other channels have theirs all the same, and this one
        is tried in the next round."""
        self.release(self._held_on - reasons.keys())
        self._held_on = set(reasons)
        for channel, reason in sorted(reasons.items()):
            self._releasing.pop(channel, None)
            self._publish(publish, channel, self.message(True, reason))
        for channel, left in sorted(self._releasing.items()):
            sent = self._publish(publish, channel, self.message(False))
            self._releasing[channel] = left - sent
            if not self._releasing[channel]:
                del self._releasing[channel]

    def changed(self) -> None:
        """Have ``run`` do the next round at once."""
        self._changed.set()

    async def run(self, send_round: Callable[[], bool]) -> None:
        """Send rounds until cancelled: at once, after each change, and every ``HOLD_PERIOD_S`` for as long as
        ``send_round`` returns that somebody is held, or an end is still to be sent. An error of it is logged, and the
        next round comes as usual."""
        while True:
            self._changed.clear()
            busy = True
            try:
                busy = send_round() or self.releasing
            except Exception:  # the hold must outlive whatever one message or call does to it
                _log.exception("robots could not be held for %s this time", self._source)
            await ends_within(HOLD_PERIOD_S if busy else None, self._changed.wait())

    def _publish(self, publish: Callable[[str, Hold], None], channel: str, message: Hold) -> bool:
        try:
            publish(channel, message)
        except Exception:  # one gate that can't be reached must not let go of the others
            _log.exception("the hold of %s could not be sent on %s", self._source, channel)
            return False
        return True
