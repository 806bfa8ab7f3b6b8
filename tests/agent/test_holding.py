"""Paused and aborted, held: said only when the velocity gates have said so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.messages.waiting import waiting_lines
from dimos_streams.runtime.live.slots import START_BOUND_S
from dimos_streams.runtime.options import RunOptions
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.agent.hold_stage import HOLDING, hold_stage
from tests.agent.stage import calling, script
from tests.bridge.monitor.watching_client import Console
from tests.helpers import until


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_pause_says_held_when_the_gate_lets_nothing_pass_any_more() -> None:
    async with hold_stage() as made:
        console = Console(made.bridge.monitor.watch())
        driving = await made.harness.call("drive")
        await made.until_it_drives()
        began = clock.monotonic()
        paused = await (await made.harness.call("pause")).closed()
        assert (paused.text, paused.data["result"]) == (
            "paused, held by gate",
            {"held": ["gate"], "not_held": [], "changed": True},
        )
        assert clock.monotonic() - began < 0.5
        assert made.speed == 0.0
        await until(lambda: console.agent("agent").get("hold"))
        assert console.agent("agent")["hold"] == {"held": ["gate"], "not_held": []}
        (line,) = (line for line in console.state["modules"] if line["name"] == "gate")
        holds = {
            "listens": True,
            "channel": "/hold#dimos_streams.Hold",
            "holds": ["agent"],
            "reasons": ["the agent is paused: by 'test'"],
        }
        assert line["state"]["velocity_gate"] == {**holds, "still": True, "max_speed": 1.0, "max_turn": 1.8}
        (own,) = (line for line in console.state["modules"] if line["name"] == "agent")
        assert list(waiting_lines("agent", own["state"])) == ["PAUSED agent, until `resume`: by 'test'"]
        again = await (await made.harness.call("pause", caller="ann", reason="wet floor")).closed()
        assert again.text == "it is paused already, held by gate"
        reasons = "wet floor (by 'ann'); by 'test'"
        await until(lambda: console.agent("agent")["paused_for"] == reasons)
        (own,) = (line for line in console.state["modules"] if line["name"] == "agent")
        assert list(waiting_lines("agent", own["state"])) == [f"PAUSED agent, until `resume`: {reasons}"]
        await (await made.harness.call("resume")).result()
        await until(lambda: made.speed > 0.15)
        assert driving.texts("close") == []
        await console.close()


@pytest.mark.feature("B3", "B5")
@pytest.mark.parametrize("gate", ["held", "deaf", "none", "frozen"])
@pytest.mark.virtual_time
async def test_a_stop_is_confirmed_like_an_abort(gate: str) -> None:
    unwired = ("hold",) if gate == "deaf" else ()
    async with hold_stage(gate=gate != "none", unwired=unwired) as made:
        if gate != "none":
            await until(lambda: any(view.name == "gate" for view in made.bridge.broker.directory.modules()))
        if gate == "frozen":
            state = json.dumps({"velocity_gate": HOLDING})
            status = ModuleStatus(module="second", instance="1", health="ok", state_json=state)
            made.harness.bus.publish(STATUS, encode(status))
        aborted = await (await made.harness.call("abort")).closed()
        await asyncio.sleep(5)
        stop = await (await made.harness.call("say", text="stop")).closed()
        was = aborted.text.partition("; the robot was ")[2]
        assert ("NOT held" in was) == (gate != "held")
        if gate != "frozen":  # how long it is silent is another matter
            assert stop.text.endswith(f"stopped: no call ran; the robot was {was}"), stop.text
        assert (stop.outcome == "completed") == (gate == "held")


@pytest.mark.feature("B3", "B5")
@pytest.mark.virtual_time
async def test_an_abort_leaves_a_pause_as_it_is_and_says_so() -> None:
    async with hold_stage() as made:
        await (await made.harness.call("pause")).closed()
        aborted = await (await made.harness.call("abort")).closed()
        assert aborted.text.splitlines()[-1] == "the agent stays paused: `resume` ends that"
        assert made.agent.core.control.paused
        assert await (await made.harness.call("resume")).result() == "goes on"
        aborted = await (await made.harness.call("abort")).closed()
        assert not aborted.data["result"]["stays_paused"]


@pytest.mark.feature("B3", "B5")
@pytest.mark.parametrize("command", ["pause", "abort"])
@pytest.mark.virtual_time
async def test_a_gate_that_is_not_wired_is_no_pause(command: str) -> None:
    async with hold_stage(unwired=("hold",)) as made:
        console = Console(made.bridge.monitor.watch())
        await made.harness.call("drive")
        await made.until_it_drives()
        ended = await (await made.harness.call(command)).closed()
        assert "NOT held: gate: it does not listen to /hold" in ended.text.splitlines()[0]
        assert ended.data["result"]["held"] == []
        assert ended.data["result"]["not_held"][0]["gate"] == "gate"
        assert made.speed > 0.15, "it drives on, and nobody was told otherwise"
        if command == "pause":
            await until(lambda: console.agent("agent").get("hold"))
            assert console.agent("agent")["hold"]["not_held"][0]["problem"] == "deaf"
        await console.close()


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_a_pause_outlives_its_agent_until_one_that_hung_has_begun_again() -> None:
    async with hold_stage() as made:
        await made.harness.call("drive")
        await made.until_it_drives()
        await (await made.harness.call("pause")).closed()
        await made.agent.end_tasks()
        before = len(made.harness.sent("cmd_vel"))
        await asyncio.sleep(RunOptions(bus_url="memq://").hang_bound_s + START_BOUND_S)
        assert {twist.linear.x for twist in made.harness.sent("cmd_vel")[before:]} == {0.0}


async def hangs() -> None:
    await asyncio.Event().wait()


async def breaks() -> None:
    raise RuntimeError("its connections are broken")


@pytest.mark.feature("B5")
@pytest.mark.parametrize(
    ("close", "said"), [(hangs, "did not close within 1 s"), (breaks, "its connections are broken")]
)
@pytest.mark.virtual_time
async def test_a_model_that_cannot_be_closed_lets_go_of_no_robot(
    close: Callable[[], Coroutine[Any, Any, None]],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with hold_stage(script(tmp_path / "turns", calling("drive"))) as made:
        monkeypatch.setattr(made.agent.core.model.adapter, "close", close)
        await (await made.harness.call("pause")).closed()
        await made.agent.end_tasks()
        sent, began = len(made.harness.sent("hold")), clock.monotonic()
        stopping = asyncio.ensure_future(made.agent.stop())
        await until(lambda: len(made.harness.sent("hold")) > sent)
        assert made.harness.sent("hold")[-1].hold
        assert clock.monotonic() == pytest.approx(began, abs=0.05)
        await stopping
        assert clock.monotonic() < began + 1.5
    assert said in caplog.text
