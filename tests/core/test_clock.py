"""Virtual time jumps, never waits, and is the same each time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
import signal
import socket
import sys
import threading
import time

import pytest

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.virtual_loop import jumping_selector
from dimos_streams.errors import UnendingError
from dimos_streams.messages.std_msgs import String
from dimos_streams.streams.reader import Reader


def test_an_hour_passes_at_once() -> None:
    async def main() -> tuple[float, int]:
        before, utime = clock.monotonic(), clock.utime()
        await asyncio.sleep(3600)
        return clock.monotonic() - before, clock.utime() - utime

    begin = time.perf_counter()
    assert clock.run_virtual(main()) == (3600.0, 3_600_000_000)
    assert time.perf_counter() - begin < 1


def test_virtual_time_is_that_of_its_loop_and_of_no_other_thread() -> None:
    async def main() -> tuple[bool, list[bool]]:
        elsewhere: list[bool] = []
        thread = threading.Thread(target=lambda: elsewhere.append(clock.is_virtual()))
        thread.start()
        thread.join()
        return clock.is_virtual(), elsewhere

    assert not clock.is_virtual()
    assert clock.run_virtual(main()) == (True, [False])
    assert not clock.is_virtual()
    assert abs(clock.monotonic() - time.monotonic()) < 10


def test_timers_fire_in_their_order_and_at_their_times() -> None:
    async def main() -> list[tuple[float, str]]:
        seen: list[tuple[float, str]] = []

        async def tick(name: str, period: float, count: int) -> None:
            for _ in range(count):
                await asyncio.sleep(period)
                seen.append((round(clock.monotonic(), 6), name))

        await asyncio.gather(tick("a", 0.3, 4), tick("b", 0.2, 6))
        return seen

    first = clock.run_virtual(main())
    assert first == clock.run_virtual(main())
    assert [at for at, _ in first] == sorted(at for at, _ in first)
    assert first[0] == (0.2, "b")
    assert first[-1][0] == 1.2


def test_blocking_work_runs_inline_and_its_errors_arrive() -> None:
    async def main() -> str:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)
        return await asyncio.to_thread(lambda: "done")

    assert clock.run_virtual(main()) == "done"


def test_a_deadlock_says_who_waits_for_what() -> None:
    never = asyncio.Event()

    async def inner() -> None:
        await never.wait()

    async def stuck() -> None:
        await inner()

    async def main() -> None:
        task = asyncio.create_task(stuck(), name="the-stuck-one")
        await asyncio.sleep(2.5)
        await task

    with pytest.raises(clock.DeadlockError) as deadlock:
        clock.run_virtual(main())
    first, *rest = str(deadlock.value).splitlines()
    assert first == "nothing is left to wait for after 2.5 s of virtual time; who waits:"
    assert len(rest) == 2
    assert rest[0].strip().startswith("Task-")
    assert ": await task  (" in rest[0]
    assert rest[1].startswith("  the-stuck-one: await never.wait()  (")
    assert rest[1].endswith(f"in {inner.__qualname__})")


def test_a_wait_without_an_end_is_a_deadlock() -> None:
    with pytest.raises(clock.DeadlockError, match="nothing is left to wait for"):
        clock.run_virtual(asyncio.sleep(float("inf")))


def test_a_deadlock_names_this_packages_files_by_their_places_in_it() -> None:
    async def main() -> None:
        await Reader[String](1).next()

    with pytest.raises(clock.DeadlockError, match=r"  \(dimos_streams/streams/reader\.py:\d+ in Reader\.next"):
        clock.run_virtual(main())


def test_a_task_that_cannot_be_cancelled_does_not_hide_the_deadlock(settled_log: pytest.LogCaptureFixture) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.get_running_loop().create_future()

    with pytest.raises(clock.DeadlockError, match="Event") as deadlock:
        clock.run_virtual(stubborn())
    assert "create_future" not in str(deadlock.value)
    assert "await asyncio.get_running_loop().create_future()" in settled_log.text


async def swallow() -> None:
    while True:
        try:
            await asyncio.sleep(1)
        except BaseException:
            continue  # the end of its coroutine, too, if somebody collected it


async def spin() -> None:
    while True:
        with contextlib.suppress(BaseException):
            await asyncio.sleep(0)


def test_what_swallows_its_cancellation_is_named_and_ends_with_the_loop() -> None:
    async def main() -> None:
        deaf = asyncio.create_task(swallow(), name="the-deaf-one")
        good = asyncio.create_task(asyncio.sleep(1000), name="the-good-one")
        await asyncio.wait([deaf, good], timeout=1)

    with pytest.raises(UnendingError) as left:
        clock.run_virtual(main())
    first, only = str(left.value).splitlines()
    assert first.startswith("still at work 60 s after it was cancelled (let asyncio.CancelledError pass")
    assert only.startswith("  the-deaf-one: await asyncio.sleep(1)  (")
    gc.collect()


def test_what_never_sleeps_ends_the_run_in_which_time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jumping_selector, "_TURNS_AT_ONCE", 5_000)

    async def main() -> None:
        await asyncio.wait([asyncio.create_task(spin(), name="the-busy-one")], timeout=1)

    with pytest.raises(clock.VirtualTimeOverError, match="time stands still at 0 s of virtual time") as over:
        clock.run_virtual(main())
    assert "  the-busy-one: await asyncio.sleep(0)  (" in str(over.value)
    gc.collect()


def test_a_run_that_may_not_go_on_for_ever_ends_and_names_who_waits() -> None:
    async def tick() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(1.0)

    async def main() -> None:
        ticking = asyncio.create_task(tick())
        try:
            await asyncio.Event().wait()
        finally:
            ticking.cancel()
            await asyncio.sleep(1.0)  # what ends still has time

    with pytest.raises(clock.VirtualTimeOverError, match="60 s of virtual time are over; who waits") as over:
        clock.run_virtual(main(), limit_s=59.5)
    assert "await asyncio.Event().wait()" in str(over.value)


def test_timers_of_one_instant_keep_their_order_whoever_else_sets_some() -> None:
    async def main(*, looked_at: bool) -> list[int]:
        loop, seen, looker = asyncio.get_running_loop(), list[int](), random.Random(1)
        for number in range(50):
            loop.call_at(1.0, seen.append, number)
            for _ in range(looker.randrange(5) if looked_at else 0):
                loop.call_at(looker.choice((0.5, 1.0, 1.5)), lambda: None).cancel()
                loop.call_at(looker.choice((0.5, 1.0, 1.5)), lambda: None)
        await asyncio.sleep(2.0)
        return seen

    assert clock.run_virtual(main(looked_at=True)) == clock.run_virtual(main(looked_at=False)) == list(range(50))


def test_time_goes_in_whole_microseconds() -> None:
    async def main() -> list[float]:
        seen = []
        for seconds in (1 / 3, 0.0000004, 1 / 7, 0.1, 0.2):
            before = clock.monotonic()
            await asyncio.sleep(seconds)
            assert clock.monotonic() >= before + seconds - 1e-7
            seen.append(clock.monotonic() * 1e6)
        return seen

    assert clock.run_virtual(main()) == pytest.approx([333334, 333335, 476193, 576193, 776193], abs=1e-3)


def test_a_file_that_may_wake_somebody_is_no_deadlock() -> None:
    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            threading.Timer(0.01, theirs.send, (b"ping",)).start()
            return await loop.sock_recv(ours, 4)

    assert clock.run_virtual(main()) == b"ping"


@pytest.mark.parametrize("step_s", [0.0, 1.0])
def test_signals_and_other_threads_reach_a_loop_that_is_never_idle(step_s: float) -> None:
    async def main() -> None:
        loop, came = asyncio.get_running_loop(), []
        loop.add_signal_handler(signal.SIGUSR1, lambda: came.append("signal"))
        signal.raise_signal(signal.SIGUSR1)
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(came.append, "thread"))
        thread.start()
        thread.join()
        for _ in range(100):
            await asyncio.sleep(step_s)
        assert sorted(came) == ["signal", "thread"]

    clock.run_virtual(main())


def test_wall_time_is_the_systems() -> None:
    async def main() -> int:
        assert not clock.is_virtual()
        return clock.utime()

    assert abs(asyncio.run(main()) - time.time_ns() // 1000) < 10_000_000
    assert clock.monotonic() == pytest.approx(time.monotonic(), abs=5)


def test_each_run_in_virtual_time_is_an_era_of_its_own(settled_log: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logging.getLogger("outside"))

    async def twice() -> int:
        log.warning("strange")
        log.warning("strange")
        return clock.era()

    assert clock.era() == 0
    assert clock.run_virtual(twice()) != clock.run_virtual(twice())
    assert len(settled_log.records) == 2, "what one run has logged is no reason to keep it from the log of another"


@pytest.mark.parametrize("debug", [False, True])
def test_errors_of_callbacks_are_reported_as_asyncio_does(debug: bool) -> None:
    reports: list[list[object]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(debug)
        reports.append([])
        loop.set_exception_handler(lambda loop, context: reports[-1].append((context["message"], sorted(context))))
        loop.call_soon(divmod, 1, 0)
        loop.call_later(0.001, divmod, 1, 0)
        await asyncio.sleep(0.01)

    clock.run_virtual(main())
    asyncio.run(main())
    virtual, real = reports
    assert len(real) == 2
    assert virtual == real


def test_an_exit_in_a_callback_ends_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(sys.exit, 3)
        await asyncio.sleep(1)

    with pytest.raises(SystemExit, match="3"):
        clock.run_virtual(main())
