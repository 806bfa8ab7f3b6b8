"""The oldest events of a table without partitions: how much they take, and how they are dropped."""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.hub.storage.engines.engine import Engine
from dimos_streams.hub.storage.rows import ROW_BYTES, KeptRange

STEP = 2000
"""Maximum number of events that are deleted in one transaction: others wait for it."""
_FIRST_STEP = 100
_LONGEST_S = 0.05
"""Time, in seconds, from which on fewer are deleted in the next one."""
_CHUNK = 1000
"""Number of events whose sizes are looked at in one transaction."""


def drop_rows_before(engine: Engine, seq: int) -> None:
    """Drop the events that have lower numbers, in transactions for which nobody waits long."""
    step = min(_FIRST_STEP, STEP)
    while True:
        began = clock.monotonic()
        with engine.transaction() as db:
            ((first,),) = db.rows("SELECT min(seq) FROM events")
            if first is None or first >= seq:
                return
            db.run("DELETE FROM events WHERE seq < ?", min(first + step, seq))
        took = clock.monotonic() - began
        step = max(step // 2, 1) if took > _LONGEST_S else min(2 * step, STEP)


def first_without_rows(engine: Engine, kept: KeptRange, excess: int) -> int:
    """The first number that is kept if the oldest events go that take ``excess`` bytes."""
    for first in range(kept.first, kept.last + 1, _CHUNK):
        with engine.reading() as db:
            rows = db.rows(
                f"SELECT seq, {engine.text_bytes.format('body')} FROM events WHERE seq >= ? AND seq < ? ORDER BY seq",
                first, first + _CHUNK,
            )  # fmt: skip
        for seq, size in rows:
            excess -= ROW_BYTES + size
            if excess <= 0:
                return int(seq) + 1
    return kept.last + 1
