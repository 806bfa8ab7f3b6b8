"""LCM's thread stays on its processor where that makes messages faster, and nowhere else; on real threads."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from dimos_streams.bus.lcm.bus import LcmBus
from dimos_streams.bus.lcm.thread_placement import ThreadPlacement, threads
from dimos_streams.bus.lcm.udpm import UdpmSocket
from dimos_streams.bus.lcm.url import UdpmUrl

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="threads are placed on Linux, if there is a choice",
)

EVERY_S = 0.005
LOOK_S = 0.05


def is_held(thread: int) -> bool:
    return len(os.sched_getaffinity(thread)) == 1


def noting(placement: ThreadPlacement, messages: int = 1) -> None:
    placement.note(messages, asyncio.get_running_loop().time())


def stream(placement: ThreadPlacement, now: float, messages: int = 1) -> float:
    """Note a steady stream from a time on, and return when it ends."""
    for number in range(22):
        placement.note(messages, now + number / 100)
    return now + 0.21


async def until(condition: Callable[[], bool], between: Callable[[], None] = lambda: None) -> None:
    async with asyncio.timeout(40):
        while not condition():
            between()
            await asyncio.sleep(EVERY_S)


@contextmanager
def running(step: Callable[[], object], end: Callable[[], object] = lambda: None) -> Iterator[int]:
    """The id of a thread that takes this step again and again; ``end`` ends the last one."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            step()

    thread = threading.Thread(target=run)
    thread.start()
    assert thread.native_id is not None
    try:
        yield thread.native_id
    finally:
        ended.set()
        end()
        thread.join()


@pytest.fixture
def woken() -> Iterator[int]:
    """A thread that is woken now and then."""
    pause = threading.Event()
    with running(lambda: pause.wait(EVERY_S)) as thread:
        yield thread


def test_a_thread_is_held_while_messages_come_one_by_one(bus_url: str) -> None:

    async def run() -> None:
        bus, before = LcmBus(bus_url), threads()
        await bus.open()
        try:
            (thread,) = threads() - before
            heard: list[bytes] = []
            bus.subscribe("/placement", lambda channel, data: heard.append(data))
            assert not is_held(thread)
            await until(lambda: is_held(thread), lambda: bus.publish("/placement", b"1"))
            assert heard
            await until(lambda: not is_held(thread))
            assert os.sched_getaffinity(thread) == os.sched_getaffinity(0)
        finally:
            await bus.close()

    asyncio.run(run())


def test_a_bus_without_a_thread_of_lcms_holds_none(bus_url: str, monkeypatch: pytest.MonkeyPatch) -> None:

    async def run() -> None:
        monkeypatch.setattr(LcmBus, "_create", lambda self: UdpmSocket(UdpmUrl.parse(self.url)))
        bus, others = LcmBus(bus_url), threads()
        await bus.open()
        try:
            heard: list[bytes] = []
            bus.subscribe("/placement", lambda channel, data: heard.append(data))
            await until(lambda: len(heard) > 9, lambda: bus.publish("/placement", b"1"))
            assert not any(map(is_held, others & threads()))
        finally:
            await bus.close()

    asyncio.run(run())


def test_messages_far_apart_and_many_at_once_leave_it_to_the_scheduler(woken: int) -> None:

    async def run() -> None:
        thread, placement = woken, ThreadPlacement(woken, asyncio.get_running_loop())
        for tenth in range(10):
            for number in range(9):
                placement.note(1, 100.0 + tenth / 10 + number / 1000)
        assert not is_held(thread), "what comes together ten times a second is far apart"
        now = stream(placement, 102.0, messages=2)
        assert not is_held(thread), "two at once"
        placement.note(1, now + 0.01)
        assert is_held(thread)
        placement.note(7, now + 0.015)
        assert is_held(thread)
        placement.note(8, now + 0.02)
        assert not is_held(thread), "many at once"
        stream(placement, now + 0.03)
        assert not is_held(thread), "more may come"
        now = stream(placement, now + 1.03)
        assert is_held(thread)
        placement.close()
        placement.close()
        assert not is_held(thread)
        stream(placement, now)
        assert not is_held(thread), "closed"

    asyncio.run(run())


def test_it_is_held_as_long_as_messages_come(woken: int) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()

        async def stays() -> bool:
            placement = ThreadPlacement(woken, loop)
            await until(lambda: is_held(woken), lambda: noting(placement))
            end = loop.time() + 4 * LOOK_S
            await until(lambda: loop.time() > end or not is_held(woken), lambda: noting(placement, 2))
            is_still = is_held(woken)
            if is_still:
                await until(lambda: not is_held(woken))
                await until(lambda: is_held(woken), lambda: noting(placement))
            placement.close()
            return is_still

        async with asyncio.timeout(40):
            while not await stays():  # other programs may have wanted the processor
                pass

    asyncio.run(run())


@pytest.mark.parametrize("messages", [True, False], ids=["messages come late", "no messages come"])
def test_a_thread_that_waits_for_its_processor_is_let_go(messages: bool) -> None:
    """Another program wants the processor on which it is held."""

    async def run() -> None:
        loop, block = asyncio.get_running_loop(), bytes(1024 * 1024)
        spin = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "while True: pass")
        try:
            with running(lambda: hashlib.sha256(block)) as thread:
                placement = ThreadPlacement(thread, loop)
                stream(placement, loop.time())
                assert is_held(thread)
                os.sched_setaffinity(spin.pid, os.sched_getaffinity(thread))
                await until(lambda: not is_held(thread), lambda: noting(placement, 2) if messages else None)
                stream(placement, loop.time() + 5.0)
                assert not is_held(thread), "for some seconds"
                stream(placement, loop.time() + 11.0)
                assert is_held(thread)
                placement.close()
        finally:
            spin.kill()
            await spin.wait()

    asyncio.run(run())


def test_a_thread_that_has_ended_or_is_not_known_is_none_to_hold() -> None:

    async def run() -> None:
        with running(lambda: None) as ended:
            pass
        for thread in (ended, None):
            placement = ThreadPlacement(thread, asyncio.get_running_loop())
            stream(placement, 100.0)
            placement.close()

    asyncio.run(run())


def test_the_processors_that_this_process_may_use_are_respected(woken: int) -> None:

    async def run() -> None:
        thread, placement = woken, ThreadPlacement(woken, asyncio.get_running_loop())
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            stream(placement, 100.0)
            assert os.sched_getaffinity(thread) == allowed, "one processor is no choice, and it is the user's"
        finally:
            os.sched_setaffinity(0, allowed)
        stream(placement, 101.0)
        assert os.sched_getaffinity(thread) < allowed

    asyncio.run(run())
