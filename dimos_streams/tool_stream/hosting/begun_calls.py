"""The calls that have begun in a host, so that none of them begins twice, and those that are not to begin."""

from __future__ import annotations

from collections.abc import Mapping

from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.readable.shortening import at_most
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.call_ids import is_call_id

REMEMBERED = 4096
"""Maximum number of ended calls that are remembered, the newest ones."""
REMEMBERED_REJECTED = 512
"""Maximum number of calls remembered that could not begin: nobody needs skills or rights to make such."""
REMEMBERED_WITHDRAWN = 2048
"""Maximum number of calls remembered that were asked to end and are not known; most are those of other hosts."""
_KEPT_REASON = 200
"""Maximum characters of a reason that are kept for such a call."""


class BegunCalls:
    """The ids of calls, with their outcomes. A call that runs is never forgotten, however many end meanwhile."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._ended = NewestEntries[str, Outcome | None](REMEMBERED)
        self._rejected = NewestEntries[str, Outcome | None](REMEMBERED_REJECTED)
        self._withdrawn = NewestEntries[str, str](REMEMBERED_WITHDRAWN)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._running or call_id in self._ended or call_id in self._rejected

    def begin(self, call_id: str) -> None:
        """Note that a call runs from now on."""
        self._running.add(call_id)

    def end(self, call_id: str, outcome: Outcome | None) -> None:
        """Note that a call has ended, or is known to have ended so."""
        self._running.discard(call_id)
        self._ended[call_id] = outcome

    def reject(self, call_id: str) -> None:
        """Note that a call could not begin."""
        self._rejected[call_id] = Outcome.REJECTED

    def withdraw(self, call_id: str, outcome: Outcome | None, reason: str) -> None:
        """Note that a call which is not known here is to end, or is closed already: its request may come later."""
        if not is_call_id(call_id):
            return
        if outcome is None:
            self._withdrawn[call_id] = at_most(reason, _KEPT_REASON)
        else:
            self._rejected[call_id] = outcome

    def withdrawal(self, call_id: str) -> str | None:
        """Return the reason why a call was to end before it was asked for; None if it was not."""
        return self._withdrawn.get(call_id)

    def outcome(self, call_id: str) -> Outcome | None:
        """Return the outcome of a call, or None if it runs or is not remembered."""
        tables: tuple[Mapping[str, Outcome | None], ...] = self._ended, self._rejected
        return next((table[call_id] for table in tables if call_id in table), None)
