"""Pages of the events of calls, from a cursor on. Nothing is remembered of readers, so a page can be read again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from dimos_streams import clock
from dimos_streams.journal.broadcast import Broadcast
from dimos_streams.journal.entry import EncodedEntry, gap_entry
from dimos_streams.tool_stream.family import parent_of

MAX_EVENTS = 50
MAX_BYTES = 48 * 1024
"""Maximum bytes of a page; one event may have more."""
_SHOWN_TYPES = frozenset({"update", "close", "gap"})


@dataclass(slots=True)
class Page:
    """Some events, and the cursor from which to read on. A cursor is an offset in the journal."""

    cursor: int
    children: bool = True
    """True if it has the events of child calls too; otherwise the skills that run them report what matters of
    them."""
    entries: list[EncodedEntry] = field(default_factory=list)
    more: bool = False
    """True if more events follow, for which there was no room."""
    _bytes: int = 0

    def add(self, entry: EncodedEntry) -> bool:
        """Take an event; return False if there is no room for it."""
        if entry.type in _SHOWN_TYPES and (self.children or not parent_of(entry.call_id)):
            self._bytes += len(entry.body)
            if self.entries and (len(self.entries) == MAX_EVENTS or self._bytes > MAX_BYTES):
                self.more = True
                return False
            self.entries.append(entry)
        self.cursor = entry.offset
        return True


async def read_page(
    broadcast: Broadcast,
    *,
    after: int | None,
    wait_s: float,
    call_id: str | None = None,
    caller: str | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Page:
    """Read the updates and closes after the cursor ``after`` (None: from the oldest event kept) of a call, or of the
    calls that a caller has made. If there are none, wait up to ``wait_s`` for some, unless ``over`` says that
    none can come any more."""
    start = broadcast.first_offset - 1 if after is None else after
    page = Page(start, children=caller is None)
    deadline = clock.monotonic() + wait_s
    with contextlib.closing(broadcast.reader(after=start, call_id=call_id, caller=caller)) as reader:
        while True:
            wants_more = not (page.entries or over())
            entries = await reader.page_within(deadline - clock.monotonic() if wants_more else 0.0)
            if after is None and call_id is not None and page.cursor == start and entries:
                _note_missing_beginning(page, entries[0])
            if not all(map(page.add, entries)):
                return page
            if not entries:
                page.cursor = reader.offset
                if not wants_more or reader.closed or clock.monotonic() >= deadline:
                    return page


def _note_missing_beginning(page: Page, first: EncodedEntry) -> None:
    """Begin the page of a call whose first events were trimmed with a gap, because silence is no answer."""
    event = first.event
    if event.type != "gap" and event.seq > 1:
        text = f"the events of call {first.call_id} before its {event.seq}th are not kept any more"
        page.add(gap_entry(first.offset - 1, 1, first.offset - 1, text, caller=first.caller, call_id=first.call_id))
