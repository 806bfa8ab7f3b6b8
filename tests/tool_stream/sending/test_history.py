"""The history of a publisher agrees with the plainest model of it, whatever comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.tool_stream.sending.history import EventHistory

MAX_EVENTS, MAX_BYTES = 5, 40


@pytest.mark.slow
@given(st.lists(st.integers(1, 30) | st.integers(-20, 0), max_size=30), st.data())
def test_a_history_is_the_newest_within_bounds_and_the_first(steps: list[int], data: st.DataObject) -> None:
    """A positive step is an event of so many bytes, another one is an acknowledgement so far back."""
    history = EventHistory(max_events=MAX_EVENTS, max_bytes=MAX_BYTES)
    events: list[bytes] = []
    first_kept = 1
    for step in steps:
        if step > 0:
            events.append(bytes([len(events) + 1]) * step)
            history.append(events[-1])
            while len(events) - first_kept + 1 > MAX_EVENTS or (
                sum(map(len, events[first_kept - 1 :])) > MAX_BYTES and first_kept < len(events)
            ):
                first_kept += 1
        else:
            history.forget(len(events) + step)
            first_kept = max(first_kept, len(events) + step + 1)
    assert (history.last_seq, history.first_kept) == (len(events), first_kept)
    assert history.newest == (events[-1] if first_kept <= len(events) else events[0] if events else b"")
    first = data.draw(st.integers(1, len(events) + 2))
    last = data.draw(st.integers(first, len(events) + 3))
    wanted = range(first, min(last, len(events)) + 1)
    kept = [events[seq - 1] for seq in wanted if seq >= first_kept]
    opening = [events[0]] if 1 in wanted and first_kept > 1 else []
    lost = [seq for seq in range(first, last + 1) if 1 < seq < first_kept]
    found, gone = history.range(first, last, 64)
    assert found == opening + kept
    assert gone == ((lost[0], lost[-1]) if lost else None)
    assert history.range(first, last, 2) == (opening + kept[:2], gone)
