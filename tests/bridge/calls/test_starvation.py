"""A module that is silent because its process waits for a processor loses no call."""

from __future__ import annotations

import asyncio
import os

import pytest

from dimos_streams.bridge.calls import starvation
from dimos_streams.bridge.calls.starvation import Starvation
from dimos_streams.common.process.run_owner import FirstThread
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from tests.bridge.scene import Worker, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("F5")]

HERE = os.uname().nodename
WAITS, HAS_WAITED = FirstThread(1, 1, wants_to_run=True), FirstThread(1, 1.75, wants_to_run=True)


@pytest.mark.parametrize(
    ("first", "second", "host", "starved_s"),
    [
        (WAITS, WAITS, HERE, 2.0),
        (WAITS, FirstThread(1.5, 1, wants_to_run=True), HERE, 1.5),
        (WAITS, FirstThread(4, 1, wants_to_run=True), HERE, 0.0),
        (FirstThread(1, 1), HAS_WAITED, HERE, 0.75),
        (FirstThread(1, 1), FirstThread(1, 1), HERE, 0.0),
        (WAITS, FirstThread(), HERE, 0.0),
        (WAITS, WAITS, "elsewhere", 0.0),
    ],
    ids=["waits", "runs, too", "runs all the time", "has waited", "sleeps", "has ended", "on another machine"],
)
async def test_what_a_silent_process_waits_for_a_processor_is_known(
    monkeypatch: pytest.MonkeyPatch, first: FirstThread, second: FirstThread, host: str, starved_s: float
) -> None:
    threads = iter((first, second))
    monkeypatch.setattr(starvation, "first_thread", lambda pid: next(threads))
    view = ModuleView("m", "1", 7, "ok", 1.0, (), host=host)
    measured = Starvation()
    for _ in range(2):
        measured.look()
        found = [measured.of(view) for _ in range(3)]  # once a look, however many calls ask
        await asyncio.sleep(2)
    assert found == [starved_s] * 3


async def test_who_is_heard_again_is_measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starvation, "first_thread", lambda pid: WAITS)
    measured, found = Starvation(), []
    for age_s in (1, 2, 0.1, 1, 2):
        measured.look()
        found.append(measured.of(ModuleView("m", "1", 7, "ok", age_s, (), host=HERE)))
        await asyncio.sleep(1)
    assert found == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("skill", ["follow", "at_once"], ids=["open", "requested"])
@pytest.mark.parametrize("for_s", [4, 9])
async def test_a_call_of_a_starved_process_is_lost_only_after_four_times_as_long(
    monkeypatch: pytest.MonkeyPatch, skill: str, for_s: float
) -> None:
    monkeypatch.setattr(Starvation, "of", lambda self, module: module.age_s)
    async with scene() as world:
        process = world.processes[-1]
        assert isinstance(process.modules["worker"], Worker)
        arguments = {"description": "ann"} if skill == "follow" else {"value": 1}
        process.bus.partitioned = skill == "at_once"
        call_id = await world.broker.call(skill, arguments, caller="you")
        if skill == "follow":
            await until(lambda: process.modules["worker"].running)  # type: ignore[attr-defined]
            await world.broker.wait(call_id, "answer", 10)
        process.bus.partitioned = True
        await asyncio.sleep(for_s)
        assert ((await world.broker.view(call_id)).outcome == "lost") is (for_s > 8)
        process.bus.partitioned = False
        if for_s < 8 and skill == "at_once":
            assert (await closed(world.broker, call_id)).result == 1
