"""What threads may do beside a module's loop, and what they may not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dimos_streams.errors import SkillError, StreamClosedError
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.threads import ToolStream
from tests.helpers import run_virtual, until


class Astray(Module):
    """Uses in a thread what belongs to the loop."""

    cmd_vel: Out[Twist]

    @skill
    def drive(self, call: Call, how: str) -> None:
        """Drive."""
        if how == "output":
            self.cmd_vel.publish(Twist(linear=Vector3(x=1.0)))
        elif how == "progress":
            call.progress("half way")
        else:
            asyncio.run(call.update("begun"))

    @skill
    def pass_over(self, call: Call) -> None:
        """Have the loop do it."""
        call.loop.call_soon_threadsafe(self.cmd_vel.publish, Twist(linear=Vector3(x=0.5)))


ASTRAY = {
    "output": (
        "output 'cmd_vel' was used in a thread beside its event loop: "
        "there, use loop.call_soon_threadsafe(output.publish, message)"
    ),
    "progress": "was used in a thread beside its event loop: there, use a ToolStream of it",
}


async def drive_astray(how: str) -> None:
    async with ModuleHarness(Astray) as harness:
        close = await (await harness.call("drive", how=how)).closed()
        assert close.outcome is Outcome.FAILED
        assert harness.sent("cmd_vel") == []
        await (await harness.call("pass_over")).result()
        await until(lambda: [sent.linear.x for sent in harness.sent("cmd_vel")] == [0.5])


@pytest.mark.parametrize("run", [asyncio.run, run_virtual])
@pytest.mark.parametrize("how", ASTRAY)
def test_what_belongs_to_the_loop_is_refused_in_a_thread(
    how: str, run: Callable[[Coroutine[Any, Any, None]], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Also where virtual time runs that inline: tests find what would fail on a robot only."""
    run(drive_astray(how))
    assert ASTRAY[how] in caplog.text


def test_no_update_is_sent_by_the_loop_of_another_thread(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(drive_astray("update"))
    assert ASTRAY["progress"] in caplog.text


class Outlived(Module):
    """Leaves a stream to a thread that goes on."""

    stream: ToolStream | None = None

    @skill
    async def leave(self, call: Call) -> None:
        """Leave it."""
        Outlived.stream = ToolStream(call)
        Outlived.stream.start()


def test_a_thread_that_outlives_the_loop_hears_that_its_stream_has_ended() -> None:
    async def leave() -> None:
        async with ModuleHarness(Outlived) as harness:
            await (await harness.call("leave")).result()

    asyncio.run(leave())
    assert Outlived.stream is not None
    for _ in range(2):
        with pytest.raises(StreamClosedError, match="has ended with its loop"):
            Outlived.stream.progress("half way")
        with pytest.raises(StreamClosedError, match="has ended with its loop"):
            Outlived.stream.send("there")


class Stuck(Call):
    """A call whose update waits for ever."""

    id = "c1"

    async def update(self, text: str, **data: Any) -> None:
        await asyncio.sleep(1000)

    def progress(self, text: str, **data: Any) -> None:
        raise NotImplementedError


def test_a_thread_that_waits_while_the_loop_ends_hears_that_its_stream_has_ended() -> None:
    heard: list[Exception] = []

    def work(stream: ToolStream) -> None:
        try:
            stream.send("here")
        except StreamClosedError as error:
            heard.append(error)

    async def end_in_the_middle() -> None:
        call = Stuck()
        call.loop = asyncio.get_running_loop()
        stream = ToolStream(call)
        stream.start()
        threads.append(threading.Thread(target=work, args=(stream,), daemon=True))
        threads[0].start()
        await until(lambda: len(asyncio.all_tasks()) > 1)

    threads: list[threading.Thread] = []
    asyncio.run(end_in_the_middle())
    threads[0].join(30.0)
    assert len(heard) == 1


class Eager(Module):
    """A thread that says how far it is, all the time."""

    @skill
    async def measure(self, call: Call) -> str:
        """Measure."""
        with ToolStream(call) as stream:
            worker = threading.Thread(target=self._measure, args=(stream,))
            worker.start()
            worker.join()  # nobody else has the loop meanwhile
            assert len(call.loop._ready) < 100  # type: ignore[attr-defined]
            await asyncio.sleep(0.1)
            stream.progress("done", share=1.0)
            with pytest.raises(SkillError, match="not JSON"):
                stream.progress("done", share=object())
            await asyncio.sleep(0.1)
        return "measured"

    @staticmethod
    def _measure(stream: ToolStream) -> None:
        for number in range(10_000):
            stream.progress(f"point {number}", share=number / 10_000)


def test_progress_of_a_thread_that_the_loop_has_not_taken_is_the_newest_only() -> None:
    async def main() -> None:
        async with ModuleHarness(Eager) as harness:
            call = await harness.call("measure")
            assert await call.result() == "measured"
            assert call.texts("progress") == ["point 9999", "done"]

    asyncio.run(main())
