"""Ships a journal to a hub: what the hub has not acknowledged, in order, for as long as there is any."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.bridge.fleet.attempts import FAILURES, Attempts
from dimos_streams.bridge.fleet.hub_requests import HubRefusalError, HubUnreachableError
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.bridge.fleet.shipping.outflow import EncodedBatch, JournalSource, next_batch
from dimos_streams.fleet.batches import Position
from dimos_streams.fleet.protocol import FLEET_CONFLICT, FLEET_ENTRY, FLEET_POSITION, MAX_ENTRIES
from dimos_streams.journal.tables import Identity
from dimos_streams.serving import problem_kinds

_LONGEST_WAIT_S = 5.0
"""Maximum time, in seconds, between attempts to reach a hub that does not answer."""
_ASK_EVERY_S = 60.0
"""Time, in seconds, after which a hub that has said nothing of a journal is asked again: one that was put back from a
copy lacks events of robots that have nothing new."""
_BELIEVED_S = 5.0
"""Maximum time, in seconds and besides the pause between batches, since a hub's last word on a journal at which a
batch goes by that: a hub that was put back meanwhile, and does not know the journal, would take the batch for its
beginning."""
_MAX_REFUSED = 20
"""Maximum number of events, of one batch or in a row, that become gaps because the hub refuses them. If more are
refused the events are not to blame, and they are tried again."""
_OF_A_BATCH = frozenset({problem_kinds.BAD_JSON.name, problem_kinds.BAD_REQUEST.name, problem_kinds.TOO_LARGE.name})
"""The refusals of a batch that don't say which of its events is to blame, if one is."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShippingState:
    """The progress of a hub in storing a journal."""

    acknowledged: int | None
    """The newest offset that is safe there; None before the hub has said so."""
    behind: int
    """Events that the hub does not have; all of the journal's before it has said what it has."""
    age_s: float | None
    """Time, in seconds, since the hub has last said what it has; None if it has not since the start."""

    @property
    def is_whole(self) -> bool:
        """True if the hub has all."""
        return self.acknowledged is not None and self.behind == 0


class Shipper:
    """Ships one journal. The hub's word decides where it goes on, after each batch and after each pause.

    Times are the loop's. ``run`` raises nothing that goes wrong: it is one of ``troubles``, and is tried again.
    """

    def __init__(
        self, link: LinkContext, source: JournalSource, *, age_s: float, stream: Callable[[], int] = lambda: 0
    ) -> None:
        """Events are collected for ``age_s``. ``stream`` is another number whenever the hub's stream of commands
        begins or ends: the hub may be another one then, whatever it has said of the journal."""
        self._source = source
        self._hub = link.hub
        self._age_s = age_s
        self._attempts = Attempts(link, "events", initial_s=0.2, longest_s=_LONGEST_WAIT_S)
        self._known: set[str] = set()
        """Journals of which the hub has said, since the start, how far it has them."""
        self._journal = Identity("", 1)
        self._after: int | None = None
        self._heard_at: float | None = None
        self._stream, self._asked_in = stream, 0
        self._refused: dict[int, None] = {}
        self._most = MAX_ENTRIES
        """Maximum number of entries of the next batch: less than usual while an event is looked for that the hub
        refuses."""
        self._left_out = 0
        """Gaps in the place of such events that the hub has taken since it has taken any event."""
        self.events = 0
        """Events that were shipped and acknowledged, since the start."""
        self.losses = 0
        """The number of times, since the start, that the hub had less of the journal than it had acknowledged, as one
        that was put back from a copy."""

    def state(self) -> ShippingState:
        """The progress of the hub now."""
        is_known = self._journal == self._source.identity and self._after is not None
        after = self._after if is_known and self._after is not None else self._source.identity.begin - 1
        age_s = None if self._heard_at is None else self._silent_s()
        return ShippingState(after if is_known else None, max(0, self._source.last_offset - after), age_s)

    async def run(self) -> None:
        """Ship until cancelled."""
        while True:
            try:
                await self._ship()
            except FAILURES as error:
                await self._attempts.pause_after(error)

    async def flush(self) -> None:
        """Ship what is there, as long as that goes well, and return. Call it while ``run`` does not run."""
        try:
            await self.ship_all()
        except FAILURES as error:
            _logger.info("the rest of the journal is for the next start: %s", error)

    async def ship_all(self) -> None:
        """Ship what is there, once. Raises ``HubUnreachableError``, ``HubRefusalError`` and ``UserError``."""
        after = await self._position()
        while (batch := await next_batch(self._source, after, self._refused, self._most)) is not None:
            taken = await self._send(batch, after)
            after, pause_s = (await self._position(), 0.0) if taken is None else taken
            if batch.full:
                await asyncio.sleep(pause_s)

    async def _ship(self) -> None:
        """Ship the journal, until another one takes its place."""
        after = await self._position()
        while self._source.identity == self._journal:
            batch = await next_batch(self._source, after, self._refused, self._most)
            believed_s = _BELIEVED_S + self._age_s if self._asked_in == self._stream() else 0.0
            if self._silent_s() >= (_ASK_EVERY_S if batch is None else believed_s):
                after = await self._position()
                continue
            if batch is None:
                if after >= self._source.last_offset:
                    self._attempts.reset()
                await asyncio.sleep(self._age_s)
                continue
            taken = await self._send(batch, after)
            if taken is None:
                return
            after, pause_s = taken
            if not batch.full:
                pause_s = max(self._age_s, pause_s)
            await asyncio.sleep(pause_s)

    async def _position(self) -> int:
        """Ask the hub where to go on. If the hub has an end of the journal that we have not, the journal has lost it:
        what we have written since is something else, and gets a new identity."""
        journal, stream = self._source.identity, self._stream()
        position = await self._hub.position(journal.journal_id)
        if self._source.identity != journal:
            return await self._position()
        is_first = journal.journal_id not in self._known
        ours = self._source.resumed_at if is_first else self._source.last_offset
        if position.acknowledged > ours:
            self._rename(
                ours + 1, f"the hub has offset {position.acknowledged} of a journal that had {ours} at its start"
            )
            return await self._position()
        if journal == self._journal and self._after is not None and position.acknowledged < self._after:
            self.losses += 1
        self._known.add(journal.journal_id)
        self._journal, self._asked_in = journal, stream
        return self._heard(position)

    async def _send(self, batch: EncodedBatch, after: int) -> tuple[int, float] | None:
        """Hand a batch over; return the offset behind which to go on, and the pause until then, in seconds. None if
        the journal is another one now. Raises ``HubUnreachableError`` for a hub that takes it and acknowledges
        nothing."""
        try:
            position = await self._hub.ship(batch.body)
        except HubRefusalError as error:
            go_on_at = self._after_refusal(batch, after, error)
            return None if go_on_at is None else (go_on_at, 0.0)
        if position.acknowledged <= after:
            raise HubUnreachableError(
                f"it acknowledged offset {position.acknowledged} after a batch from {after + 1} on"
            )
        self._most = min(MAX_ENTRIES, 2 * self._most)
        self._left_out = 0 if batch.events else self._left_out + (batch.upto in self._refused)
        self.events += batch.events if position.acknowledged >= batch.upto else 0
        self._attempts.reset()
        return self._heard(position), position.wait_s

    def _after_refusal(self, batch: EncodedBatch, after: int, error: HubRefusalError) -> int | None:
        """Return the offset behind which to go on after a refusal at once; None if the journal is another one now.
        Raises ``error`` if it has to be tried again later."""
        if error.offset is None:
            if error.kind in _OF_A_BATCH and self._narrows(batch, error):
                return after
            self._most = MAX_ENTRIES
        elif error.kind == FLEET_POSITION and error.offset != after:
            self.losses += error.offset < after
            self._after = max(error.offset, self._journal.begin - 1)
            return self._after
        elif error.kind == FLEET_CONFLICT:
            self._rename(error.offset, f"the hub has another event at offset {error.offset}")
            return None
        elif error.kind == FLEET_ENTRY and error.offset not in self._refused and len(self._refused) < _MAX_REFUSED:
            self._leave_out(error.offset, error)
            return after
        self._refused.clear()
        raise error

    def _narrows(self, batch: EncodedBatch, error: HubRefusalError) -> bool:
        """Return whether to go on with half of a batch that was refused as a whole, or with a gap in the place of a
        single event. If the hub takes no gap either, no event is to blame."""
        if self._left_out >= _MAX_REFUSED or (batch.entries == 1 and not batch.events):
            return False
        if batch.entries > 1:
            self._most = batch.entries // 2
            return True
        self._leave_out(batch.upto, error)
        return True

    def _leave_out(self, offset: int, error: HubRefusalError) -> None:
        _logger.warning("event %d is missing at the hub: %s", offset, error)
        self._refused[offset] = None

    def _silent_s(self) -> float:
        """The time since the hub has last said what it has, infinite if it has not since the start."""
        return float("inf") if self._heard_at is None else clock.monotonic() - self._heard_at

    def _heard(self, position: Position) -> int:
        """Note what the hub has said; return the offset behind which the journal goes on."""
        self._heard_at = clock.monotonic()
        self._after = max(position.acknowledged, self._journal.begin - 1)
        for offset in [offset for offset in self._refused if offset <= self._after]:
            del self._refused[offset]
        return self._after

    def _rename(self, begin: int, why: str) -> None:
        old = self._source.identity.journal_id
        self._source.rename(begin)
        _logger.warning(
            "%s: from offset %d on the journal %s is %s", why, begin, old, self._source.identity.journal_id
        )
