"""Tasks that are cancelled and waited for."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dimos_streams.common.tasks import OwnedTasks, apart, end_tasks, end_tasks_silently, ends_within, outlasting

End = Callable[..., Coroutine[Any, Any, None]]


class Slow:
    """A task that takes its time to end, and may fail meanwhile."""

    def __init__(self, error: Exception | None = None) -> None:
        self.cancelled = 0
        self._error = error
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            await asyncio.sleep(1000.0)
        finally:
            for _ in range(2):
                self.cancelled += 1
                try:
                    await asyncio.sleep(1.0)
                    break
                except asyncio.CancelledError:
                    pass
            if self._error is not None:
                raise self._error


@pytest.mark.virtual_time
@pytest.mark.parametrize("end", [end_tasks, end_tasks_silently])
async def test_all_have_ended_then(end: End) -> None:
    await end()
    first, second = Slow(), Slow()
    over = asyncio.ensure_future(asyncio.sleep(0.0))
    await asyncio.sleep(0.1)
    await end(first.task, second.task, over)
    assert first.task.cancelled()
    assert second.task.cancelled()
    assert (first.cancelled, second.cancelled, over.cancelled()) == (1, 1, False)


@pytest.mark.virtual_time
@pytest.mark.parametrize(("end", "says"), [(end_tasks, ["broken"]), (end_tasks_silently, [])])
async def test_an_error_is_logged_or_not(end: End, says: list[str]) -> None:
    found: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: found.append(context["exception"]))
    slow = Slow(ValueError("broken"))
    await asyncio.sleep(0.1)
    await end(slow.task)
    del slow
    gc.collect()
    assert [str(error) for error in found] == says


@pytest.mark.virtual_time
@pytest.mark.parametrize(("end", "waits"), [(end_tasks, False), (end_tasks_silently, True)])
async def test_whoever_ends_them_may_be_cancelled(end: End, waits: bool) -> None:
    slow = Slow()
    await asyncio.sleep(0.1)
    ending = asyncio.ensure_future(end(slow.task))
    await asyncio.sleep(0.1)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert slow.task.done() is waits
    await asyncio.wait([slow.task])
    assert slow.cancelled == (2 if waits else 1)


async def _await_what_it_has_cancelled() -> None:
    job = asyncio.ensure_future(asyncio.sleep(1000.0))
    job.cancel()
    await job


@pytest.mark.virtual_time
async def test_work_apart_that_ends_as_cancelled_is_an_error_of_the_work_and_not_the_waiters_end() -> None:
    with pytest.raises(RuntimeError, match=r"^tidy ended because something that it awaited was cancelled: "):
        await apart(_await_what_it_has_cancelled(), name="tidy")


@pytest.mark.virtual_time
async def test_whoever_waits_for_work_apart_and_is_cancelled_takes_it_along() -> None:
    slow = asyncio.Event()
    waiting = asyncio.ensure_future(apart(slow.wait(), name="slow"))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0.0)
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "slow"] == []


@pytest.mark.virtual_time
async def test_owned_tasks_are_kept_reported_and_ended(settled_log: pytest.LogCaptureFixture) -> None:
    owned, ended = OwnedTasks(), list[str]()

    async def work(name: str, lasts_s: float, fails: bool = False) -> str:
        try:
            await asyncio.sleep(lasts_s)
            if fails:
                raise RuntimeError("it is broken")
        finally:
            ended.append(name)
        return name

    first = owned.spawn(work("first", 1.0), name="first")
    owned.spawn(work("broken", 1.0, fails=True), name="broken")
    owned.spawn(work("last", 100.0), name="last")
    assert [task.get_name() for task in owned] == ["first", "broken", "last"]
    gc.collect()
    assert await first == "first"
    await asyncio.sleep(0.1)
    assert len(owned) == 1
    assert "the task 'broken' has a defect and ends" in settled_log.text
    await owned.end()
    await owned.end()
    assert (len(owned), ended) == (0, ["first", "broken", "last"])
    assert settled_log.text.count("has a defect") == 1


@pytest.mark.virtual_time
async def test_only_the_bound_s_own_timeout_says_that_work_was_late() -> None:
    async def times_out() -> None:
        raise TimeoutError("the device did not answer")

    assert await ends_within(1.0, asyncio.sleep(0.9))
    began = asyncio.get_running_loop().time()
    assert not await ends_within(1.0, asyncio.sleep(60))
    assert asyncio.get_running_loop().time() - began == pytest.approx(1.0, abs=0.01)
    with pytest.raises(TimeoutError, match="the device did not answer"):
        await ends_within(1.0, times_out())


@pytest.mark.virtual_time
@pytest.mark.parametrize("error", [None, ValueError("no room")])
async def test_a_task_outlasts_who_waits_for_it_and_its_late_error_is_one_line(
    error: Exception | None, settled_log: pytest.LogCaptureFixture
) -> None:
    ended = False

    async def work() -> int:
        nonlocal ended
        await asyncio.sleep(1.0)
        ended = True
        if error is not None:
            raise error
        return 7

    waiting = asyncio.ensure_future(outlasting(asyncio.create_task(work(), name="the work")))
    await asyncio.sleep(0.5)
    await end_tasks(waiting)
    assert (waiting.cancelled(), ended) == (True, False)
    await asyncio.sleep(1.0)
    gc.collect()
    assert ended
    assert settled_log.messages == (
        [] if error is None else ["the work, for which nobody waits any more, failed: no room"]
    )


@pytest.mark.virtual_time
async def test_who_waits_for_a_task_that_outlasts_has_its_result_or_its_error(
    settled_log: pytest.LogCaptureFixture,
) -> None:
    async def work(text: str) -> int:
        await asyncio.sleep(1.0)
        return int(text)

    assert await outlasting(asyncio.create_task(work("7"))) == 7
    with pytest.raises(ValueError, match="invalid literal"):
        await outlasting(asyncio.create_task(work("seven")))
    gc.collect()
    assert settled_log.messages == []
