"""A call that is lost is closed, also where the journal does not take that at once."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from dimos_streams.bridge.journal import tables
from tests.bridge.parts import answered, closed, scene


@pytest.mark.virtual_time
async def test_a_lost_call_whose_close_the_journal_could_not_take_is_closed_at_the_next_look(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene() as world:
        call_id = await world.broker.call("follow", {"description": "ann"}, caller="you")
        await answered(world.broker, call_id)
        write, failed = tables.write, 0

        def fail_at_first(db: sqlite3.Connection, *rows: Any) -> None:
            nonlocal failed
            if failed < 2:
                failed += 1
                raise MemoryError
            write(db, *rows)

        world.processes[-1].bus.partitioned = True
        monkeypatch.setattr(tables, "write", fail_at_first)
        assert (await closed(world.broker, call_id)).outcome == "lost"
        assert (failed, world.broker.ledger.leases.holders()) == (2, {})
        assert f"call {call_id} could not be closed as lost" in caplog.text
