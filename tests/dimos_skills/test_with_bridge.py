"""Tools of dimos beside other skills, behind a bridge: leases, an operator's stop, a cut link, a program's call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from dimos_streams.bridge.calls.stops import gate_watch
from dimos_streams.dimos_skills.module import DimosSkills
from dimos_streams.errors import CallRejectedError, SkillArgumentError
from dimos_streams.module import LOSS_BOUND_S, RunContext, Services
from dimos_streams.tool_stream.event import Outcome
from tests.bridge.scene import Scene, answered, closed, collect, scene
from tests.dimos_skills.stand_in import StandIn, stand_in
from tests.dimos_skills.test_dimos_skills import QUICK
from tests.helpers import until


@contextlib.asynccontextmanager
async def beside(server: StandIn, loss_bound_s: float = LOSS_BOUND_S) -> AsyncIterator[Scene]:
    async with scene() as made:
        context = RunContext(services=Services(), loss_bound_s=loss_bound_s)
        module = DimosSkills({**QUICK, "url": server.url}, name="dimos", context=context)
        await made.add(module)
        await made.offered("dimos_patrol")
        await until(lambda: server.heard_by)
        yield made


@pytest.mark.feature("G3", "A11", "K5")
def test_it_shares_the_base_and_an_operators_stop_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_watch, "CONFIRM_S", 0.1)  # there is no gate

    async def scenario(server: StandIn) -> None:
        async with beside(server) as made:
            broker = made.broker
            patrol = await broker.call("dimos_patrol", {"rounds": 3}, caller="agent")
            assert (await answered(broker, patrol)).answer == "Patrolling"
            for skill, arguments in (("at_once", {"value": 1}), ("dimos_patrol", {})):
                with pytest.raises(CallRejectedError, match=patrol):
                    await broker.call(skill, arguments, caller="agent")
            with pytest.raises(SkillArgumentError, match="rounds: it must be a whole number"):
                await broker.call("dimos_patrol", {"rounds": "x"}, caller="agent")
            for number in range(1, 20):
                server.progress(server.tokens[-1], number, f"round {number}")
            report = await broker.stops.stop_robot("", "somebody is in the way")
            assert patrol in report.calls.ended
            view = await closed(broker, patrol)
            assert (view.outcome, view.text) == (
                Outcome.CANCELLED,
                "an operator has stopped the robot: somebody is in the way",
            )
            said = [event.text for event in await collect(broker, call_id=patrol) if event.type == "update"]
            assert sorted(said) == sorted(
                ["Patrolling", "[stop_patrol: Patrol is stopping]", *(f"round {number}" for number in range(1, 20))]
            )
            assert said.index("round 1") < said.index("round 19")
            with pytest.raises(CallRejectedError, match="may move a robot that an operator has stopped"):
                await broker.call("dimos_patrol", {}, caller="agent")
            waved = await broker.call("dimos_wave", {}, caller="agent")
            assert (await closed(broker, waved)).result["value"]["metadata"] == {"times": 2}
            await broker.stops.release("")
            assert await broker.call("at_once", {"value": 1}, caller="agent")

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.slow
@pytest.mark.feature("G3", "F5")
def test_a_cut_link_ends_what_may_move() -> None:
    async def scenario(server: StandIn) -> None:
        async with beside(server, loss_bound_s=0.5) as made:
            patrol = await made.broker.call("dimos_patrol", {}, caller="agent")
            await answered(made.broker, patrol)
            made.processes[-1].bus.partitioned = True
            await until(lambda: server.asked[-1][0] == "stop_patrol")

    with stand_in() as server:
        asyncio.run(scenario(server))
