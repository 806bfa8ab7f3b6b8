"""Virtual time jumps, never waits, and is the same each time."""

from __future__ import annotations

import asyncio
import time

import pytest

from dimos_streams import clock


def test_an_hour_passes_at_once() -> None:
    async def main() -> tuple[float, int]:
        before, utime = clock.monotonic(), clock.utime()
        await asyncio.sleep(3600)
        return clock.monotonic() - before, clock.utime() - utime

    begin = time.perf_counter()
    assert clock.run_virtual(main()) == (3600.0, 3_600_000_000)
    assert time.perf_counter() - begin < 1


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
    async def stuck() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(stuck(), name="the-stuck-one")
        await task

    with pytest.raises(clock.DeadlockError, match=r"the-stuck-one at .*stuck"):
        clock.run_virtual(main())


def test_wall_time_is_the_systems() -> None:
    async def main() -> int:
        assert not clock.is_virtual()
        return clock.utime()

    assert abs(asyncio.run(main()) - time.time_ns() // 1000) < 10_000_000
    assert clock.monotonic() == pytest.approx(time.monotonic(), abs=5)
