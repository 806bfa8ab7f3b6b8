"""Whoever waits for a hub's database is told what became of it, whoever else waits, has gone or has failed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dimos_streams.hub.asking import Asker, BridgeRequest, RobotUnreachableError
from dimos_streams.hub.batch_intake import BatchIntake
from dimos_streams.hub.storage.rows import CommandState, RobotBatch, StorageUnavailableError, TakeAnswer, Taken
from tests.hub.stored import batch, numbered

pytestmark = pytest.mark.feature("H2")


class _Storage:
    """A storage of batches and of one command."""

    def __init__(self, **state: Any) -> None:
        self.commands = self
        self.is_down = False
        fields: dict[str, Any] = {
            "sent": True,
            "left_s": 9.0,
            "outcome": "answered",
            "status": 200,
            "body": "[1]",
        } | state
        self._state = CommandState(id=1, headers="{}", doubled=False, **fields)

    def store(self, batches: Sequence[RobotBatch]) -> list[TakeAnswer]:
        if self.is_down:
            raise StorageUnavailableError("down")
        return [Taken(each.entries[-1].last) for each in batches]

    def give(self, new: object, asked_at: float) -> int:
        return 1

    def states(self, ids: Collection[int]) -> Mapping[int, CommandState]:
        return dict.fromkeys(ids, self._state)


def test_each_robot_that_waits_is_answered_though_one_has_gone() -> None:
    async def work() -> None:
        storage = _Storage()
        with ThreadPoolExecutor(1) as threads:
            intake = BatchIntake(storage, threads, lambda: None, holds_up_orders=True)  # type: ignore[arg-type]
            for is_down in (False, True):
                storage.is_down = is_down
                waiting = [asyncio.create_task(intake.store(batch(*numbered(1, last)))) for last in (1, 2, 3)]
                await asyncio.sleep(0)
                waiting[0].cancel()
                running = asyncio.create_task(intake.run())
                async with asyncio.timeout(10.0):
                    found = await asyncio.gather(*waiting[1:], return_exceptions=True)
                assert [str(each) for each in found] == (["down"] * 2 if is_down else [str(Taken(2)), str(Taken(3))])
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            assert (intake.trouble, intake.entries) == ("down", 6)

    asyncio.run(work())


def test_each_who_asks_for_one_command_gets_its_answer_though_one_has_gone() -> None:
    async def work() -> None:
        with ThreadPoolExecutor(1) as threads:
            asker = Asker(_Storage(), threads)  # type: ignore[arg-type]
            request = BridgeRequest("r1", "GET", "/calls", key="k")
            asking = [asyncio.create_task(asker.ask(request)) for _ in range(3)]
            while sum(map(len, asker._waiting.values())) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            asking[0].cancel()
            running = asyncio.create_task(asker.run())
            async with asyncio.timeout(10.0):
                assert [(await each).body for each in asking[1:]] == [[1], [1]]
            assert asker._waiting == {}, "nobody is looked for any more"
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(work())


@pytest.mark.parametrize("sent", [True, False])
def test_a_command_that_its_robot_found_too_late_was_not_carried_out(sent: bool) -> None:
    async def work() -> None:
        with ThreadPoolExecutor(1) as threads:
            asker = Asker(_Storage(sent=sent, outcome="expired"), threads)  # type: ignore[arg-type]
            running = asyncio.create_task(asker.run())
            async with asyncio.timeout(10.0):
                with pytest.raises(RobotUnreachableError, match="too late"):
                    await asker.ask(BridgeRequest("r1", "GET", "/calls"))
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(work())
