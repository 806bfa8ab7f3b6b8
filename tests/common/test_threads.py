"""Functions that block have threads enough, and what must not wait for others has its own."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dimos_streams.bus.lcm.thread_placement import threads
from dimos_streams.common.process.live_loop import run_live
from dimos_streams.common.process.threads import (
    begin_thread,
    check_free_thread,
    in_executor,
    in_own_thread,
    see_out,
)
from dimos_streams.module import Module
from tests.helpers import no_threads, run_virtual, until

pytestmark = pytest.mark.feature("A6")

_MANY = 32
"""As many as docs/writing-skills.md promises, however few processors the machine has."""


def test_so_many_may_block_at_once_and_nobody_keeps_others_from_a_thread_of_their_own() -> None:
    go_on = threading.Event()
    blocked = 0

    def block() -> None:
        nonlocal blocked
        blocked += 1
        go_on.wait()

    async def scenario() -> str:
        blocking = [asyncio.create_task(asyncio.to_thread(block)) for _ in range(_MANY + 1)]
        try:
            await until(lambda: blocked == _MANY)
            return await in_own_thread(lambda: threading.current_thread().name)
        finally:
            go_on.set()
            await asyncio.gather(*blocking)

    assert "own thread" in run_live(scenario())


def test_what_it_raises_is_raised() -> None:
    def fail() -> None:
        raise ValueError("so it is")

    async def scenario() -> None:
        with pytest.raises(ValueError, match="so it is"):
            await in_own_thread(fail)

    asyncio.run(scenario())


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("in_thread", [in_own_thread, Module().run_blocking])
def test_an_iterator_that_ends_in_it_is_an_error_and_no_wait_for_ever(
    in_thread: Callable[..., Coroutine[Any, Any, Any]], live: bool
) -> None:
    async def scenario() -> None:
        nothing: Iterator[int] = iter(())
        async with asyncio.timeout(10.0):
            with pytest.raises(RuntimeError, match=r"^next raised StopIteration$") as raised:
                await in_thread(next, nothing)
        assert isinstance(raised.value.__cause__, StopIteration)

    (asyncio.run if live else run_virtual)(scenario())


def test_whoever_is_cancelled_does_not_wait_and_nobody_minds_what_comes_later() -> None:
    go_on, over = threading.Event(), threading.Event()

    def fail() -> None:
        go_on.wait()
        over.set()
        raise ValueError("nobody hears it")

    async def scenario() -> None:
        waiting = asyncio.create_task(in_own_thread(fail))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go_on.set()
        await until(over.is_set)

    asyncio.run(scenario())


def test_a_loop_that_has_ended_meanwhile_is_left_alone() -> None:
    go_on = threading.Event()
    threads: list[threading.Thread] = []

    def wait() -> None:
        threads.append(threading.current_thread())
        go_on.wait()

    async def scenario() -> None:
        waiting = asyncio.create_task(in_own_thread(wait))
        await until(lambda: bool(threads))
        waiting.cancel()

    asyncio.run(scenario())
    go_on.set()
    threads[0].join(10)
    assert not threads[0].is_alive()


def test_in_virtual_time_it_is_done_at_once() -> None:
    assert run_virtual(in_own_thread(lambda: threading.current_thread())) is threading.current_thread()


def test_a_look_whether_there_may_be_a_thread_leaves_none_to_the_system() -> None:
    before = threads()
    for _ in range(300):
        check_free_thread()
        assert threads() <= before


def test_what_finds_no_thread_is_never_done() -> None:
    """An executor has queued it all the same, and would do it when one of its threads is free."""
    go_on, done = threading.Event(), list[str]()

    async def scenario() -> None:
        with ThreadPoolExecutor(2) as executor:
            asyncio.get_running_loop().set_default_executor(executor)
            waiting = asyncio.create_task(Module().run_blocking(go_on.wait))
            await asyncio.sleep(0)
            with no_threads(), pytest.raises(OSError, match="no more threads"):
                await Module().run_blocking(done.append, "late")
            go_on.set()
            await waiting

    asyncio.run(scenario())
    assert done == []


def test_what_a_thread_has_begun_nevertheless_has_its_result() -> None:
    class Busy(ThreadPoolExecutor):
        """One whose last thread was free again at the moment in which it could not begin another."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            fn(*args, **kwargs)
            raise RuntimeError("can't start new thread")

    async def scenario() -> int:
        with Busy() as executor:
            return await in_executor(executor, int, "7")

    assert asyncio.run(scenario()) == 7


def test_what_waits_for_a_thread_of_an_executor_that_ends_is_waited_for_no_longer() -> None:
    go_on = threading.Event()

    async def scenario() -> None:
        executor = ThreadPoolExecutor(1)
        begun, waiting = in_executor(executor, go_on.wait), in_executor(executor, int, "7")
        executor.shutdown(wait=False, cancel_futures=True)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go_on.set()
        assert await begun

    asyncio.run(scenario())


def test_what_ends_something_is_done_on_the_loop_where_there_is_no_thread() -> None:
    async def scenario() -> threading.Thread:
        with no_threads():
            return await see_out(threading.current_thread)

    assert asyncio.run(scenario()) is threading.current_thread()


def test_an_executor_that_has_ended_is_not_taken_for_a_limit_of_the_system() -> None:
    async def scenario() -> OSError:
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        with pytest.raises(OSError, match="cannot schedule new futures after shutdown: those who run it") as raised:
            in_executor(executor, int)
        return raised.value

    assert asyncio.run(scenario()).errno == errno.ECANCELED


def test_a_thread_that_is_begun_twice_is_no_lack_of_threads() -> None:
    thread = threading.Thread(target=int, name="once")
    begin_thread(thread)
    with pytest.raises(RuntimeError, match="thread 'once' was started before"):
        begin_thread(thread)
    thread.join()
