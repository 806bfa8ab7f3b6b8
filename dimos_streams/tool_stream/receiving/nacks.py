"""The schedule by which a receiver asks for the events that it misses, and gives them up."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable

from dimos_streams.tool_stream.receiving.received_call import ReceivedCall
from dimos_streams.tool_stream.receiving.received_calls import ReceivedCalls
from dimos_streams.tool_stream.receiving.requests import Requests

REORDER_WINDOW_S = 0.003
"""The time, in seconds, for which an event may be overtaken by later ones before it is asked for."""
NACK_DELAYS_S = (0.005, 0.01, 0.02, 0.04, 0.08, *(0.16,) * 17)
"""Pauses, in seconds, after each request without an answer; then the events count as gone. They are 2.9 s in all, and
so many requests that at 30 % loss in both directions one of three million ranges is given up."""
_NAMED_S = 1.5
"""The time, in seconds, after which a call that no heartbeat of its module has named is not named any more: six of
them."""
_MAX_DEAF_ATTEMPTS = len(NACK_DELAYS_S) + 60
"""Maximum number of requests, 12.5 s in all, of a receiver that had no room for all that came, perhaps for the
answer."""
_MAX_RANGES = 256
_MAX_DUE = 256
"""Maximum number of calls looked at in one turn of the loop."""


class NackSchedule:
    """The schedule of requests for missing events, each call's at its time, with one timer for all. Use from the
    bus's loop only."""

    def __init__(
        self,
        calls: ReceivedCalls,
        requests: Requests,
        give_up: Callable[[ReceivedCall, int], None],
        missed_at: Callable[[], float],
    ) -> None:
        """``give_up`` gets a call for whose missing events no request has helped, and the last of these in a row;
        ``missed_at`` returns the time on the loop's clock at which there was last no room for events here."""
        self._calls = calls
        self._requests = requests
        self._give_up = give_up
        self._missed_at = missed_at
        self._due: list[tuple[float, int, str]] = []
        """The times at which calls are to be looked at, as a heap."""
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._running = False

    def start(self) -> None:
        """Begin to ask."""
        self._loop = asyncio.get_running_loop()
        self._running = True

    def stop(self) -> None:
        """Ask for nothing more. Stopping twice is fine."""
        self._running = False
        if self._timer is not None:
            self._timer.cancel()

    def arm(self, call: ReceivedCall) -> None:
        """Look soon at a call that misses events, unless its time is set already."""
        if call.nack_at is None:
            self._look_at(call, self._loop.time() + REORDER_WINDOW_S)
        self._schedule()

    def _look_at(self, call: ReceivedCall, when: float) -> None:
        call.nack_at = when
        heapq.heappush(self._due, (when, next(self._numbers), call.call_id))

    def _schedule(self) -> None:
        if not self._due or not self._running:
            return
        when = self._due[0][0]
        if self._timer is not None:
            if self._timer.when() <= when and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        for _ in range(_MAX_DUE):
            if not self._due or self._due[0][0] > now:
                break
            when, _, call_id = heapq.heappop(self._due)
            call = self._calls.get(call_id)
            if call is not None and call.nack_at == when:
                self._nack(call, now)
        self._schedule()

    def _nack(self, call: ReceivedCall, now: float) -> None:
        missing = call.missing(_MAX_RANGES)
        if not missing:
            call.nack_at = None
        elif call.attempts < len(NACK_DELAYS_S) or self._may_come(call, now):
            for first, last in missing:
                if not self._requests.nack(call, first, last):
                    break  # the next time
            self._look_at(call, now + NACK_DELAYS_S[min(call.attempts, len(NACK_DELAYS_S) - 1)])
            call.attempts += 1
        elif not self._calls.forget_name(call):
            self._give_up(call, missing[0][1])

    def _may_come(self, call: ReceivedCall, now: float) -> bool:
        """Return whether it makes sense to ask on although so many requests have had no answer.

        A call of which nothing has come is but a name, which anybody can make up: another one gets its place then.
        Events behind which nothing waits delay nothing, and may be the call's close: as long as the module names the
        call, it has the events or says that they are gone; unless what it answers can't be read.
        """
        waits_behind = call.pending.first is not None
        if not call.delivered and not waits_behind:
            return False
        if not waits_behind and now - call.named_at < _NAMED_S and not call.answers_unreadably:
            return True
        return now - self._missed_at() < sum(NACK_DELAYS_S) and call.attempts < _MAX_DEAF_ATTEMPTS
