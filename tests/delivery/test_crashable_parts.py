"""Parts that crash and start again, as users' tests may have them."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import create_bus
from dimos_streams.client.asking_again import ask_until_answered
from dimos_streams.errors import CallRejectedError, NoAnswerError
from dimos_streams.testing import CrashablePart, PartDownError, PartGateway
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import JournalEntry
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.delivery.skills import Body, Walker
from tests.helpers import until


class CrashableWalker:
    """A bridge and a walker, each in a part of its own."""

    def __init__(self, journal: Path) -> None:
        self.bus = create_bus("memq://")
        self.bodies: list[Body] = []
        self.bridge = CrashablePart(self.bus, lambda c: [Bridge({"journal": journal}, name="bridge", context=c)])
        self.walker = CrashablePart(self.bus, lambda c: [Walker(self.bodies, 0, name="walker", context=c)])
        self.gateway = PartGateway(self.bridge, random=random.Random(1))

    async def __aenter__(self) -> CrashableWalker:
        await self.bus.open()
        await self.bridge.start()
        await self.walker.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.walker.stop()
        await self.bridge.stop()
        await self.bus.close()

    async def drive(self, to: int = 100, **more: float | str) -> str:
        async with asyncio.timeout(5):
            while not await self.gateway.skills():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return await self.gateway.call("drive", {"to": to, "pause_ms": 100}, caller="me", **more)  # type: ignore[arg-type]


@pytest.mark.virtual_time
async def test_a_crashed_part_says_nothing_more(tmp_path: Path) -> None:
    async with CrashableWalker(tmp_path / "journal") as world:
        call_id = await world.drive()
        await asyncio.sleep(1)
        heard: list[bytes] = []
        world.bus.subscribe(STATUS, lambda _, data: heard.append(data) if b"walker" in data else None)
        world.walker.crash()
        world.walker.crash()
        await asyncio.sleep(1)
        assert not heard
        assert not world.walker.running
        assert [body.ended is not None for body in world.bodies] == [True]
        with pytest.raises(PartDownError):
            world.walker.module("walker")
        await asyncio.sleep(1)
        (view,) = await world.gateway.calls()
        assert (view.call_id, view.outcome) == (call_id, Outcome.LOST)
        await world.walker.start()
        await until(lambda: heard)
        assert world.walker.starts == 2
        with pytest.raises(PartDownError):
            await world.walker.start()


@pytest.mark.virtual_time
async def test_a_bridge_comes_back_with_what_was_committed(tmp_path: Path) -> None:
    async with CrashableWalker(tmp_path / "journal") as world:
        record: list[JournalEntry] = []

        async def read() -> None:
            async for entry in world.gateway.events(after=0):
                record.append(entry)

        reading = asyncio.create_task(read())
        call_id = await world.drive(to=30)
        await asyncio.sleep(1)
        waiting = asyncio.create_task(world.drive(lease_wait_s=60.0))
        await asyncio.sleep(0)
        world.bridge.crash()
        with pytest.raises(NoAnswerError) as lost:
            await waiting
        with pytest.raises(NoAnswerError) as refused:
            await world.gateway.skills()
        assert (lost.value.may_have_arrived, refused.value.may_have_arrived) == (True, False)
        await asyncio.sleep(0.5)
        await world.bridge.start()
        world.gateway.cut()
        await until(lambda: record and record[-1].event.type == "close")
        assert {entry.event.call_id for entry in record} == {call_id}
        assert [entry.offset for entry in record] == list(range(1, 63))
        assert [entry.event.seq for entry in record] == list(range(1, 63))
        reading.cancel()


@pytest.mark.virtual_time
async def test_a_bridge_that_crashes_before_it_answers_is_asked_again(tmp_path: Path) -> None:
    async with CrashableWalker(tmp_path / "journal") as world:
        driving = await world.drive(to=30)

        async def ask() -> str:
            return await world.drive(to=1, idempotency_key="k", lease_wait_s=60.0)

        asking = asyncio.create_task(ask_until_answered(ask, "who knows"))
        await asyncio.sleep(0.5)
        world.bridge.crash()
        await asyncio.sleep(0.1)
        await world.bridge.start()
        call_id = await asking
        assert [view.call_id for view in await world.gateway.calls()] == [driving, call_id]


@pytest.mark.virtual_time
async def test_a_damaged_journal_is_a_gap_for_every_reader(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    async with CrashableWalker(path) as world:
        await world.drive(to=1)
        await asyncio.sleep(1)
        read_up_to = await world.gateway.offset()
        world.bridge.crash()
        path.write_bytes(b"no journal" * 1000)
        await world.bridge.start()
        await world.drive(to=10)  # more than there was
        await asyncio.sleep(2)
        events: list[JournalEntry] = []
        async for entry in world.gateway.events(after=read_up_to):
            events.append(entry)
            if entry.event.type == "close":
                break
        assert [entry.event.type for entry in events[:3]] == ["gap", "open", "update"]
        assert events[0].event.data["from_offset"] == read_up_to + 1
        assert [entry.event.seq for entry in events[1:]] == list(range(1, len(events)))


@pytest.mark.virtual_time
async def test_a_bridge_that_lost_its_journal_gives_no_lease_away_that_is_held(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    async with CrashableWalker(path) as world:
        driving = await world.drive()
        await asyncio.sleep(1)
        world.bridge.crash()
        path.write_bytes(b"no journal" * 1000)
        await world.bridge.start()
        with pytest.raises(CallRejectedError, match=f"needs 'base', which .*call '{driving}'"):
            await world.drive()
        assert [body.call_id for body in world.bodies] == [driving]


@pytest.mark.virtual_time
async def test_requests_to_a_part_that_crashes_fail_in_their_order() -> None:
    """Whatever happens then is the same in each run."""
    part = CrashablePart(create_bus("memq://"), lambda context: [])
    await part.start()
    failed: list[int] = []

    async def ask(number: int) -> None:
        with pytest.raises(PartDownError):
            await part.ask(asyncio.sleep(10))
        failed.append(number)

    async with asyncio.TaskGroup() as asking:
        for number in range(100):
            asking.create_task(ask(number))
        await asyncio.sleep(1)
        part.crash()
    await part.stop()
    assert failed == list(range(100))
