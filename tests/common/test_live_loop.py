"""The loop of live processes: uvloop's if there is one, with timers that code written for asyncio's can rely on."""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from dimos_streams import clock
from dimos_streams.common.process import given_up, live_loop
from dimos_streams.common.process.live_loop import run_live
from dimos_streams.errors import UnendingError

DELAYS_S = [0.0001, 0.0004, 0.00049, 0.0014, 0.0024, 0.0034, 0.01049]

needs_uvloop = pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="needs uvloop")


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """How threads take turns is this process's, and not these tests'."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


async def bases() -> set[str]:
    """The packages that the running loop's classes come from."""
    return {kind.__module__.partition(".")[0] for kind in type(asyncio.get_running_loop()).__mro__}


@needs_uvloop
def test_it_is_uvloops_where_that_is_installed() -> None:
    assert "uvloop" in run_live(bases())


def test_it_is_asyncios_where_uvloop_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert "uvloop" not in run_live(bases())


def test_who_looks_at_the_clock_when_a_timer_fires_finds_that_it_is_time() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        early: list[float] = []
        done = asyncio.Event()
        left = 5 * len(DELAYS_S)

        def look(due: float) -> None:
            nonlocal left
            left -= 1
            if clock.monotonic() < due:
                early.append(due - clock.monotonic())
            if left == 0:
                done.set()

        for _ in range(5):
            for delay_s in DELAYS_S:
                loop.call_later(delay_s, look, clock.monotonic() + delay_s)
            await asyncio.sleep(0.0003)
        await done.wait()
        return early

    assert run_live(main()) == []


def test_a_thread_that_computes_lets_the_loop_go_on() -> None:
    sys.setswitchinterval(0.005)

    async def main() -> float:
        return sys.getswitchinterval()

    assert run_live(main()) == pytest.approx(0.0005), "the loop waits for that some times in each turn"


@pytest.mark.parametrize("delay_s", [-1.0, 0.0, 0.0003, 10.0, float("inf")])
def test_every_timer_says_when_it_is_due_and_can_be_cancelled(delay_s: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        fired: list[float] = []
        timer = loop.call_later(delay_s, fired.append, delay_s)
        assert timer.when() >= loop.time() + min(delay_s, 0.0)
        timer.cancel()
        await asyncio.sleep(0.003)
        assert timer.cancelled()
        assert fired == []

    run_live(main())


def _end_by_signal() -> None:
    # The fork has copied a loop that runs.
    asyncio._set_running_loop(None)

    async def main() -> None:
        reported = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, reported.set)
        asyncio.get_running_loop().call_later(0.001, signal.raise_signal, signal.SIGTERM)
        await reported.wait()

    run_live(main())
    sys.exit(7)


def test_a_process_forked_beside_a_loop_has_one_of_its_own() -> None:
    async def main() -> int | None:
        child = multiprocessing.get_context("fork").Process(target=_end_by_signal)
        child.start()
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(child.sentinel, ended.set)
        async with asyncio.timeout(20):
            await ended.wait()
        loop.remove_reader(child.sentinel)
        child.join()
        return child.exitcode

    assert run_live(main()) == 7


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_loop, "_END_BOUND_S", 0.05)
    monkeypatch.setattr(given_up, "threads", [])


@pytest.mark.usefixtures("hasty")
def test_a_task_that_swallows_its_cancellation_is_named_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_loop, "_END_BOUND_S", 1.0)  # in which an idle thread ends on a busy machine, too

    async def swallow() -> None:
        while True:
            try:
                await asyncio.sleep(0.01)
            except BaseException:
                continue

    async def main() -> None:
        await asyncio.wait([asyncio.create_task(swallow(), name="the-deaf-one")], timeout=0.01)
        await asyncio.to_thread(int)

    with pytest.raises(UnendingError, match=r"still at work 1 s after .*\n  the-deaf-one: await asyncio\.sleep"):
        run_live(main())
    assert given_up.threads == []


@pytest.mark.usefixtures("hasty")
def test_a_thread_that_goes_on_is_named_and_not_waited_for() -> None:
    go = threading.Event()

    async def main() -> None:
        asyncio.get_running_loop().run_in_executor(None, go.wait)
        raise ValueError("what main raises counts")

    try:
        with pytest.raises(ValueError, match="what main raises counts"):
            run_live(main())
        (thread,) = given_up.threads
        assert thread.is_alive()
    finally:
        go.set()
    thread.join()


@pytest.mark.usefixtures("hasty")
def test_what_threads_say_at_their_end_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_loop, "_END_BOUND_S", 20.0)
    heard = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, lambda: loop.call_soon_threadsafe(heard.set) and heard.wait(10))

    run_live(main())
    assert heard.is_set()
