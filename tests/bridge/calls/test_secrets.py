"""What callers and skills say brings no secret of the bridge into calls, events or messages."""

from __future__ import annotations

import pytest

from dimos_streams.common.secrets import know, know_environment
from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS
from dimos_streams.tool_stream.protocol.close_data import STOPPED
from tests.bridge.calls.driven_robots import Stubborn
from tests.bridge.scene import answered, closed, collect, scene
from tests.helpers import until


@pytest.mark.virtual_time
async def test_a_call_is_given_no_secret_that_the_bridge_knows() -> None:
    know("sk-p1ant3d/key+7")
    async with scene() as world:
        sent: list[bytes] = []
        world.inner.subscribe_all(lambda _, data: sent.append(data))
        call_id = await world.broker.call("count", {"label": "a sk-p1ant3d/key+7", "to": 1}, caller="agent")
        assert (await answered(world.broker, call_id)).answer == "a [redacted] 1"
        assert (await closed(world.broker, call_id)).arguments["label"] == "a [redacted]"
        running = await world.broker.call("follow", {"description": "ann"}, caller="agent")
        await world.broker.cancel(running, "for sk-p1ant3d/key+7")
        assert (await closed(world.broker, running)).text == "for [redacted]"
        assert not any(b"p1ant3d" in data for data in sent)


@pytest.mark.virtual_time
async def test_a_call_that_a_skill_asks_for_brings_no_secret_in() -> None:
    know("sk-p1ant3d/key+7")
    async with scene() as world:
        running = await world.broker.call("follow", {"description": "ann"}, caller="agent")
        given = '{"label": "sk-p1ant3d/key+7"}'
        asked = SkillCall(call_id="x", skill="sk-p1ant3d/key+7", parent=running, arguments_json=given)
        world.inner.publish(CALLS, encode(asked))
        await until(lambda: world.broker.ledger.calls.get("x") is not None)
        view = await closed(world.broker, "x")
        assert (view.outcome, view.arguments) == (Outcome.REJECTED, {"label": "[redacted]"})

        world.inner.publish(CALLS, encode(SkillCall(call_id="y", skill="count", parent=running)))
        world.inner.publish(CANCELS, encode(SkillCancel(call_id="y", reason="for sk-p1ant3d/key+7")))
        await until(lambda: world.broker.ledger.calls.get("y") is not None)
        assert (await closed(world.broker, "y")).text == "withdrawn before it began: for [redacted]"
        assert not any("p1ant3d" in str(event.to_dict()) for event in await collect(world.broker))


@pytest.mark.virtual_time
@pytest.mark.parametrize("caller", ["operator", "monitor"])
async def test_nobody_is_kept_out_by_a_secret_that_is_a_name_of_ours(caller: str) -> None:
    know_environment({"BACKUP": f"ssh://{caller}@nas/robots"})
    async with scene() as world:
        call_id = await world.broker.call("at_once", {"value": 1}, caller=caller)
        assert (await closed(world.broker, call_id)).outcome is Outcome.COMPLETED
        with pytest.raises(CallRejectedError, match="the caller has a secret"):
            await world.broker.call("at_once", {"value": 1}, caller=f"{caller}-2")


@pytest.mark.virtual_time
async def test_a_stop_says_that_it_is_one_though_a_secret_is_a_word_of_that() -> None:
    know("operator")
    know("sk-p1ant3d/key+7")
    async with scene(worker=False) as world:
        arm, heard = Stubborn(name="arm"), list[SkillCancel]()
        world.inner.subscribe(CANCELS, lambda channel, data: heard.append(decode(SkillCancel, data, channel=channel)))
        await world.add(arm)
        await world.offered("wave")
        await answered(world.broker, await world.broker.call("wave", {}, caller="agent"))
        report = await world.broker.stops.stop_robot("", "for sk-p1ant3d/key+7")
        assert report.calls.going_on
        assert {each.reason for each in heard} == {f"{STOPPED}: for [redacted]"}
        arm.enough.set()
