"""Progress that later progress stands for, left out for readers that are slow."""

from __future__ import annotations

from dimos_streams.journal.entry import EncodedEntry, with_data


def coalesce(entries: list[EncodedEntry]) -> list[EncodedEntry]:
    """Leave out each ``progress`` whose next event of the same call is ``progress`` too.

    The one that stays is the newest of its run, at its own offset, and says in ``coalesced`` how many it is.
    """
    newest: dict[str, int] = {}
    counts: dict[int, int] = {}
    for index, entry in enumerate(entries):
        counts[index] = _events_in(entry)
        earlier = newest.get(entry.call_id)
        if earlier is not None and entry.type == entries[earlier].type == "progress":
            counts[index] += counts.pop(earlier)
        newest[entry.call_id] = index
    return [
        with_data(entries[index], coalesced=count) if count > _events_in(entries[index]) else entries[index]
        for index, count in counts.items()
    ]


def _events_in(entry: EncodedEntry) -> int:
    """The number of events that an entry stands for; a publisher may have coalesced it before."""
    if entry.type == "progress" and b'"coalesced"' in entry.body:
        count = entry.event.data.get("coalesced")
        return count if isinstance(count, int) and count > 1 else 1
    return 1
