"""kill -9 of a process whose skill runs skills of another one, at random moments, for ``DIMOS_STREAMS_FAMILY_KILLS``
rounds."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from pathlib import Path

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.event import Outcome
from tests.helpers import until
from tests.live.mission import Mission, loop_time, running

KILLS = int(os.environ.get("DIMOS_STREAMS_FAMILY_KILLS", "3"))
STILL_WITHIN_S = 2.0
"""For the death to be noticed, and for the robot to brake."""
HELD_UP_S = 0.5
"""A busy machine may keep bridge and simulator from that for so long at most, as far as it is seen that it did."""

pytestmark = [pytest.mark.live, pytest.mark.timeout(60 + 30 * KILLS), pytest.mark.feature("K1")]


def held_up(mission: Mission, moment: float) -> float:
    """For how long the simulator, which measures every 0.05 s, was kept from it by a busy machine after a moment, in
    seconds and half a one at most: a robot that stands in no time stands late there."""
    times = [moment, *(at for at, _ in mission.speeds if at >= moment)]
    return min(HELD_UP_S, sum(max(0.0, later - at - 0.1) for at, later in itertools.pairwise(times)))


async def kill_one(mission: Mission, rng: random.Random, number: int) -> None:
    await mission.until_offered("errand", "go_to")
    sign = 1 if number % 2 else -1
    call_id = await mission.gateway.call("errand", {"x": 1.5 * sign, "y": 0.0}, caller="operator")
    await asyncio.sleep(rng.uniform(0.0, 3.0))
    moment, waited_s = mission.kill("errands"), mission.waited_s("bridge")
    await until(lambda: any(e.call_id == call_id and e.type == "close" for e in mission.events))
    for _ in range(100):
        views = [view for view in await mission.gateway.calls() if view.call_id.startswith(call_id)]
        if all(view.state == "closed" for view in views):
            break
        await asyncio.sleep(0.05)
    assert {view.state for view in views} == {"closed"}, views
    texts = [(view.skill, view.outcome, view.text) for view in views]
    ended = {view.call_id: loop_time(view.closed_utime or 0) - moment for view in views}
    late_s = min(HELD_UP_S, mission.waited_s("bridge") - waited_s)
    assert max(ended.values()) <= STILL_WITHIN_S + late_s, (texts, ended, late_s)
    if ended[call_id] > 0.3:  # or it was over when the process died; what it ran may still end by itself
        assert views[0].outcome is Outcome.LOST, (texts, ended)
    await until(lambda: mission.speeds[-1][0] > moment + STILL_WITHIN_S + HELD_UP_S)
    still = mission.still_since(moment)
    speeds = [(round(at - moment, 2), round(speed, 2)) for at, speed in mission.speeds if at >= moment]
    assert still is not None, (f"it drives on, held up for {held_up(mission, moment):.2f} s", speeds, texts, ended)
    assert still <= STILL_WITHIN_S + held_up(mission, moment), (texts, ended)
    await mission.until_restarted("errands", number)


def test_what_a_killed_process_ran_ends_and_the_robot_stands(bus_url: str, free_port: int, tmp_path: Path) -> None:
    errands = ModuleSpec(name="errands", type="tests.live.modules:Errands", process="errands", restart="always")
    blueprint = resolve("robot-only")

    async def main() -> None:
        rng = random.Random(7)
        whole = blueprint.with_modules(
            [errands, ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge")]
        )
        async with running(bus_url, free_port, tmp_path, whole) as mission:
            for number in range(1, KILLS + 1):
                try:
                    await kill_one(mission, rng, number)
                except SkillError as error:
                    raise AssertionError(f"round {number}: {error}") from error

    asyncio.run(main())
