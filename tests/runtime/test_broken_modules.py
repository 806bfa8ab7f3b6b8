"""Modules that can't start, end by somebody else's cancellation, or do not stop in order, beside others in a host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from dimos_streams.bus.memory import MemoryBus
from dimos_streams.errors import DimosStreamsError, ModuleFailedError, UserError
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.skill import SkillSpec
from dimos_streams.streams import In, Out
from tests.runtime.modules import Talker
from tests.runtime.test_hosts import opened

pytestmark = pytest.mark.virtual_time


class Impatient(Talker):
    """It awaits what it has cancelled."""

    async def start(self) -> None:
        self.job = asyncio.create_task(asyncio.sleep(1000.0))

    async def stop(self) -> None:
        self.job.cancel()
        await self.job


async def test_a_module_whose_stop_ends_as_cancelled_keeps_nobody_from_stopping(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stopped: list[str] = []

    class Standing(Talker):
        async def stop(self) -> None:
            stopped.append(self.name)

    async with opened(MemoryBus()) as bus:
        host = ModuleHost(bus)
        impatient = Impatient(name="impatient")
        for module in (Standing(name="drive"), impatient):
            await host.start(module, {"words": f"/{module.name}"})
        with caplog.at_level(logging.ERROR):
            await host.stop()
        assert (stopped, host.modules) == (["drive"], [])
        with pytest.raises(DimosStreamsError):
            impatient.words.publish(String(data="it is disconnected"))
    assert "module impatient failed while it stopped" in caplog.text
    assert "impatient:stop ended because something that it awaited was cancelled" in caplog.text


async def test_a_module_whose_stop_is_cut_off_is_disconnected_all_the_same() -> None:
    async with opened(MemoryBus()) as bus:
        host = ModuleHost(bus)
        slow = Talker({"stop_takes_s": 2.0}, name="slow")
        await host.start(slow, {"words": "/words"})
        stopping = asyncio.create_task(host.stop())
        await asyncio.sleep(1.0)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        with pytest.raises(DimosStreamsError):
            slow.words.publish(String(data="it is disconnected"))
        await host.stop()


class Aimless(Talker):
    """It awaits what it has cancelled, in a hook or in a task of its own."""

    where = "run"

    async def start(self) -> None:
        if self.where == "start":
            await self.lose()
        if self.where == "spawned":
            self.spawn(self.lose(), name="spawned")

    async def run(self) -> None:
        if self.where == "run":
            await self.lose()

    async def lose(self) -> None:
        job = asyncio.create_task(asyncio.sleep(1000.0))
        job.cancel()
        await job


@pytest.mark.parametrize(
    ("where", "says"),
    [("run", "failed"), ("spawned", "failed"), ("start", "could not start")],
)
async def test_work_of_a_module_that_ends_by_somebody_elses_cancellation_is_its_failure(
    where: str, says: str
) -> None:
    async with opened(MemoryBus()) as bus:
        host = ModuleHost(bus)
        aimless = Aimless(name="aimless")
        aimless.where = where

        async def start_and_fail() -> None:
            await host.start(aimless, {})
            await host.wait_for_failure()

        cause = rf"RuntimeError: aimless:{where} ended because something that it awaited was cancelled: await "
        with pytest.raises(ModuleFailedError, match=rf"^module 'aimless' {says}: {cause}"):
            await asyncio.wait_for(start_and_fail(), timeout=5)
        await host.stop()


async def test_a_task_that_its_module_cancels_is_not_its_failure() -> None:
    async with opened(MemoryBus()) as bus:
        host = ModuleHost(bus)
        talker = Talker(name="talker")
        await host.start(talker, {})
        job = talker.spawn(asyncio.sleep(1000.0), name="job")
        await asyncio.sleep(0.1)
        job.cancel()
        await asyncio.wait([job])
        starting = asyncio.create_task(host.start(SlowStarter(name="slow"), {}))
        await asyncio.sleep(0.1)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert [module.name for module in host.modules] == ["talker"]
        assert not talker.failure().done()
        await host.stop()
        assert not talker.failure().done(), "nor is its end"


class SlowStarter(Talker):
    async def start(self) -> None:
        await asyncio.sleep(1000.0)


class Echo(Module):
    """Its streams are connected one after the other."""

    words: In[String]
    echoes: Out[String]
    commands: In[String]


async def test_a_module_that_can_not_be_wired_leaves_no_stream_connected() -> None:
    async with opened(MemoryBus()) as bus:
        host = ModuleHost(bus)
        echo = Echo(name="echo")
        with pytest.raises(UserError, match="stream 'commands' of module 'echo' is required and has no topic"):
            await host.start(echo, {"words": "/words", "echoes": "/echoes"})
        with pytest.raises(DimosStreamsError, match="output 'echoes' is not connected"):
            echo.echoes.publish(String(data="hello"))
        assert not bus.has_subscribers("/words#std_msgs.String")
        assert host.modules == []
        await host.stop()


class Indescribable(Talker):
    """Its skills can't be described, as they are known only while it runs."""

    stopped = False

    def offered_skills(self) -> Mapping[str, SkillSpec]:
        raise TypeError("skill 'wave' takes what has no JSON form")

    async def stop(self) -> None:
        self.stopped = True


async def test_a_module_whose_skills_can_not_be_described_is_stopped_again_and_named() -> None:
    async with opened(MemoryBus()) as bus:
        host = ModuleHost(bus)
        module = Indescribable(name="waver")
        says = r"^module 'waver' could not start: TypeError: skill 'wave' takes what has no JSON form$"
        with pytest.raises(ModuleFailedError, match=says):
            await host.start(module, {"words": "/words"})
        assert (module.stopped, host.modules) == (True, [])
        tasks = [task.get_name() for task in asyncio.all_tasks()]
        assert not any("waver" in name for name in tasks), tasks
        await host.stop()
