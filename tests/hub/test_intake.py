"""How many events may wait to be stored at a hub."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dimos_streams.errors import DimosStreamsError
from dimos_streams.hub import batch_intake
from dimos_streams.hub.batch_intake import BatchIntake, HubBusyError
from dimos_streams.hub.storage.rows import (
    RobotBatch,
    StorageUnavailableError,
    TakeAnswer,
    Taken,
    WrongSchemaError,
)
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from tests.hub.serving import opened_storage
from tests.hub.stored import batch, numbered


@pytest.mark.virtual_time
async def test_what_waits_never_exceeds_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_intake, "MAX_WAITING", 5)
    storage = HubStorage(open_engine(f"sqlite:///{tmp_path}/hub.sqlite"))
    intake = BatchIntake(storage, ThreadPoolExecutor(1), lambda: None, holds_up_orders=True)
    waiting = asyncio.create_task(intake.store(batch(*numbered(1, 3))))
    await asyncio.sleep(0)
    with pytest.raises(HubBusyError, match="3 events wait"):
        await intake.store(batch(*numbered(4, 6)))
    fits = asyncio.create_task(intake.store(batch(*numbered(4, 5))))
    await asyncio.sleep(0)
    with pytest.raises(HubBusyError, match="5 events wait"):
        await intake.store(batch(*numbered(6, 6)))
    for task in (waiting, fits):
        task.cancel()


async def store_all(intake: BatchIntake, batches: Sequence[RobotBatch]) -> None:
    """Have all of them wait before the first is stored."""
    waiting = [asyncio.create_task(intake.store(each)) for each in batches]
    await asyncio.sleep(0)
    running = asyncio.create_task(intake.run())
    await asyncio.gather(*waiting)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_no_batch_joins_a_transaction_whose_first_batch_has_the_most_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_intake, "_MOST", 3)
    stored: list[int] = []

    async def main() -> None:
        with opened_storage(f"sqlite:///{tmp_path}/hub.sqlite") as storage, ThreadPoolExecutor(1) as threads:
            storage.open()
            intake = BatchIntake(storage, threads, lambda: stored.append(intake.entries), holds_up_orders=True)
            await store_all(intake, [batch(*numbered(1, 3)), batch(*numbered(4, 4)), batch(*numbered(5, 5))])

    asyncio.run(main())
    assert stored == [3, 5]


@pytest.mark.parametrize(
    ("holds_up_orders", "at_first", "then"), [(True, [500] * 10, [500, 1000, 2000, 1500]), (False, [5000], [5000])]
)
def test_a_transaction_for_which_orders_wait_has_what_it_stores_in_a_tenth_of_a_second(
    holds_up_orders: bool, at_first: list[int], then: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, sizes, entry_s = [0.0], list[int](), [0.0005]
    monkeypatch.setattr(batch_intake, "clock", SimpleNamespace(monotonic=lambda: now[0]))

    class Storage:
        def store(self, batches: Sequence[RobotBatch]) -> list[TakeAnswer]:
            sizes.append(sum(len(each.entries) for each in batches))
            now[0] += sizes[-1] * entry_s[0]
            return [Taken(each.entries[-1].last) for each in batches]

    async def main() -> None:
        with ThreadPoolExecutor(1) as threads:
            storage = cast("HubStorage", Storage())
            intake = BatchIntake(storage, threads, lambda: None, holds_up_orders=holds_up_orders)
            each = batch(*numbered(1, 100))
            for seconds in (0.0005, 0.00001):
                entry_s[0] = seconds
                await store_all(intake, [each] * 50)

    asyncio.run(main())
    count = len(at_first)
    assert sizes[:count] == at_first, "500 take 0.25 s: with fewer a transaction costs more than what is in it"
    assert sizes[count:] == then


@pytest.mark.parametrize(
    ("error", "later"), [(StorageUnavailableError("deadlock"), ""), (WrongSchemaError("newer"), "newer")]
)
@pytest.mark.virtual_time
async def test_a_batch_with_which_no_robot_comes_again_is_trouble_for_a_minute(
    error: DimosStreamsError, later: str
) -> None:
    class Storage:
        def store(self, batches: object) -> list[TakeAnswer]:
            raise error

    intake = BatchIntake(cast("HubStorage", Storage()), ThreadPoolExecutor(1), lambda: None, holds_up_orders=True)
    running = asyncio.create_task(intake.run())
    with pytest.raises(type(error)):
        await intake.store(batch(*numbered(1, 3)))
    assert intake.trouble == str(error)
    await asyncio.sleep(59.0)
    assert intake.trouble == str(error)
    await asyncio.sleep(2.0)
    assert intake.trouble == later
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_robots_are_asked_to_leave_time_for_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    now, paces = [0.0], list[float]()
    monkeypatch.setattr(batch_intake, "clock", SimpleNamespace(monotonic=lambda: now[0]))

    async def main() -> None:
        class Storage:
            def store(self, batches: Sequence[RobotBatch]) -> list[TakeAnswer]:
                paces.append(intake.pace_s)
                now[0] += 0.1
                return [Taken(each.entries[-1].last) for each in batches]

        with ThreadPoolExecutor(1) as threads:
            intake = BatchIntake(cast("HubStorage", Storage()), threads, lambda: None, holds_up_orders=True)
            await store_all(intake, [batch(*numbered(1, 1000))] * 3)

    asyncio.run(main())
    assert paces == pytest.approx([0.05, 0.6, 0.4])
