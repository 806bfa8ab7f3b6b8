"""Calls that are to end: by their time limit, by a cancel, or because their host stops in order, on a bus that loses
their ends; all in virtual time."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.errors import SkillRunError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.testing import Faults, ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.bridge.scene import Worker, answered, closed, scene
from tests.helpers import until


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
@pytest.mark.parametrize("modules", [1, 3])
async def test_a_call_that_its_module_ends_in_order_has_its_own_end_though_that_was_lost_at_first(
    modules: int,
) -> None:
    async with scene(worker=False) as world:
        process = await world.add(*(Worker(name=f"worker{n}") for n in range(modules)))
        await until(lambda: len(world.broker.directory.modules()) == modules + 1)
        await world.offered("search")
        call_id = await world.broker.call("search", {}, caller="me")
        await until(lambda: world.broker.ledger.calls.open[0].last_seq > 10)
        stopping = asyncio.create_task(process.host.stop())
        process.bus.faults = Faults(loss=1.0)
        await asyncio.sleep(0.05)
        process.bus.faults = Faults()
        await stopping
        view = await closed(world.broker, call_id)
        assert (view.outcome, view.text) == (Outcome.CANCELLED, "the module is stopping")


@pytest.mark.virtual_time
@pytest.mark.feature("A6")
async def test_modules_that_nobody_hears_wait_together_no_longer_than_one() -> None:
    async with scene(worker=False) as world:
        process = await world.add(*(Worker(name=f"worker{n}") for n in range(4)))
        await world.offered("search")
        await world.broker.call("search", {}, caller="me")
        await until(lambda: world.broker.ledger.calls.open[0].last_seq > 10)
        process.bus.faults = Faults(loss=1.0)
        began = clock.monotonic()
        await process.host.stop()
        assert clock.monotonic() - began < 0.5


class Hasty(Module):
    """Its skill ends before a call that it runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.may_end = asyncio.Event()
        self.runs: list[asyncio.Future[Any]] = []

    @skill
    async def begin(self, call: Call) -> None:
        """Begin to follow Ann."""
        self.runs.append(asyncio.ensure_future(call.skills.run("follow", description="ann")))
        await self.may_end.wait()


@pytest.mark.virtual_time
async def test_what_a_skill_runs_and_does_not_wait_for_ends_with_it_also_without_a_bridge() -> None:
    async with scene(worker=False) as world:
        worker, hasty = Worker(name="worker"), Hasty(name="hasty")
        for module in (worker, hasty):
            await world.add(module)
        await world.offered("follow")
        await world.offered("begin")
        await world.broker.call("begin", {}, caller="me")
        await until(lambda: worker.running)
        await world.kill_bridge()
        hasty.may_end.set()
        await until(lambda: not worker.running)
        with pytest.raises(SkillRunError, match="does not want it any more"):
            await hasty.runs[0]


class Deaf(Module):
    """Its skills swallow their cancellation."""

    @skill(time_limit_s=1)
    async def hurry(self, rounds: int) -> str:
        """Go round, whatever happens."""
        return await self._round(rounds)

    @skill
    async def stroll(self, call: Call, rounds: int) -> str:
        """Go round, whatever happens."""
        await call.update("strolling")
        return await self._round(rounds)

    async def _round(self, rounds: int) -> str:
        for _ in range(rounds):
            try:
                await asyncio.sleep(0.2)
            except BaseException:  # what this is about
                continue
        return "x"


@pytest.mark.virtual_time
async def test_a_module_that_stops_begins_nothing_while_its_calls_end() -> None:
    async with scene(worker=False) as world:
        process = await world.add(Deaf(name="deaf"))
        await world.offered("stroll")
        await answered(world.broker, await world.broker.call("stroll", {"rounds": 100}, caller="me"))
        stopping = asyncio.create_task(process.host.stop())
        await asyncio.sleep(0.5)
        late = SkillCall(call_id="late", module="deaf", skill="hurry", caller="me", arguments_json='{"rounds": 1}')
        world.inner.publish(CALLS, encode(late))
        await stopping
        assert world.broker.ledger.find("late") is None


LATE = "; it did not end within 2 s, at await asyncio.sleep(0.2)  (test_ending.py:"
REMEDY = " in Deaf._round): let asyncio.CancelledError pass, as `except Exception` does, and bound what blocks"


def without_folders(text: str) -> str:
    return text.replace(f"{Path(__file__).parent}/", "")


@pytest.mark.virtual_time
async def test_a_skill_that_swallows_its_time_limit_has_timed_out_and_is_named_in_time(
    settled_log: pytest.LogCaptureFixture,
) -> None:
    async with ModuleHarness(Deaf, name="deaf") as harness:
        began = clock.monotonic()
        call = await harness.call("hurry", rounds=100)
        await until(lambda: settled_log.messages)
        assert 3.0 <= clock.monotonic() - began < 3.5
        closed = await call.closed()
        assert clock.monotonic() - began == pytest.approx(20.0, abs=0.5)
        assert (closed.outcome, closed.data["result"]) == (Outcome.TIMED_OUT, "x")
        (warning,) = map(without_folders, settled_log.messages)
        assert warning.startswith(f"skill 'hurry' of module 'deaf' was to end, call {call.id}{LATE}")
        assert warning.endswith(REMEDY)
        said = without_folders(closed.text)
        assert said.startswith(f"it ran longer than 1 s{LATE}")
        assert said.endswith(REMEDY)


@pytest.mark.virtual_time
async def test_a_skill_that_swallows_its_cancel_is_cancelled_and_named(settled_log: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Deaf, name="deaf") as harness:
        call = await harness.call("stroll", rounds=30)
        await call.answer()
        call.cancel("enough")
        closed = await call.closed()
        assert closed.outcome is Outcome.CANCELLED
        assert without_folders(closed.text).startswith(f"enough{LATE}")
        (warning,) = settled_log.messages
        assert closed.text.removeprefix("enough") in warning


@pytest.mark.virtual_time
@pytest.mark.parametrize(("skill_name", "outcome"), [("hurry", Outcome.TIMED_OUT), ("stroll", Outcome.CANCELLED)])
async def test_a_skill_that_returns_a_last_result_when_it_is_to_end_gives_it_and_nobody_minds(
    skill_name: str, outcome: Outcome, settled_log: pytest.LogCaptureFixture
) -> None:
    async with ModuleHarness(Deaf, name="deaf") as harness:
        call = await harness.call(skill_name, rounds=8)
        await asyncio.sleep(0.1)
        if skill_name == "stroll":
            call.cancel("enough")
        closed = await call.closed()
        assert (closed.outcome, closed.data["result"]) == (outcome, "x")
        assert closed.text in ("it ran longer than 1 s", "enough")
    assert not settled_log.messages


@pytest.mark.virtual_time
async def test_a_skill_that_outlasts_its_module_is_named_once(settled_log: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Deaf, name="deaf") as harness:
        call = await harness.call("stroll", rounds=30)
        await call.answer()
    closed = call.events[-1]
    assert closed.outcome is Outcome.CANCELLED
    assert without_folders(closed.text).startswith(f"the module is stopping{LATE}")
    assert len(settled_log.messages) == 1
    await asyncio.sleep(5.0)


class Queued(Module):
    """Its skills run in threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting, self.enough, self.acted = threading.Event(), threading.Event(), threading.Event()

    @skill
    def occupy(self) -> None:
        """Keep the only thread."""
        self.waiting.set()
        self.enough.wait(30.0)

    @skill
    def act(self) -> None:
        """Do something."""
        self.acted.set()


def test_a_skill_that_was_cancelled_while_it_waited_for_a_thread_does_nothing() -> None:
    """In real time: in virtual time work for threads runs inline."""

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with ModuleHarness(Queued) as harness:
            module = harness.module
            assert isinstance(module, Queued)
            first = await harness.call("occupy")
            await until(module.waiting.is_set)
            second = await harness.call("act")
            second.cancel("enough")
            assert (await second.closed()).outcome is Outcome.CANCELLED
            module.enough.set()
            await first.closed()
            await asyncio.to_thread(lambda: None)  # which comes behind it
            assert not module.acted.is_set()

    asyncio.run(main())
