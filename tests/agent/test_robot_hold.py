"""A hold by itself: what velocity gates confirm, and what is told of those that do not."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import pytest

from dimos_streams import clock
from dimos_streams.agent.control.robot_hold import RobotHold
from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import Hold, ModuleStatus
from dimos_streams.operator.holding import RELEASES
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.agent.hold_stage import HOLDING
from tests.helpers import until


@dataclass
class Gates:
    """Velocity gates as an agent hears of them: the test says what they say."""

    bus: Bus
    hold: RobotHold
    events: list[dict[str, Any]]
    changes: list[float]
    why: str = ""

    def say(self, gate: str, state: object) -> None:
        text = state if isinstance(state, str) else json.dumps({"velocity_gate": state})
        self.bus.publish(STATUS, encode(ModuleStatus(module=gate, instance="1", health="ok", state_json=text)))

    def want(self, why: str) -> None:
        self.why = why
        self.hold.changed()


@contextlib.asynccontextmanager
async def gates(agent: str = "robot1/agent", topic: str = "/hold") -> AsyncIterator[Gates]:
    channel = channel_name(topic, Hold)
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    events: list[dict[str, Any]] = []
    changes: list[float] = []
    hold = RobotHold(
        agent,
        why=lambda: made.why,
        emit=lambda kind, missions=(), *phase, **data: events.append(data),
        directory=directory,
        bound_s=1.0,
    )
    hold.shown_changed.add(lambda: changes.append(clock.monotonic()))
    made = Gates(bus, hold, events, changes)
    running = asyncio.create_task(hold.run(lambda message: bus.publish(channel, encode(message)), channel))
    await asyncio.sleep(0)
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.wait([running])
        directory.stop()
        await bus.close()


@pytest.mark.virtual_time
async def test_whoever_says_nothing_of_an_agent_has_it_look_through_no_modules_once_its_hold_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each agent hears every module of every robot, and there may be a thousand."""
    async with gates() as made:
        made.want("paused")
        made.want("")
        looked = Mock(return_value=[])
        monkeypatch.setattr(ModuleDirectory, "reporting", looked)
        made.say("robot1/gate", {**HOLDING, "holds": ["robot2/agent"]})
        made.say("robot1/camera", "{}")
        await asyncio.sleep(1.0)
        looked.assert_not_called()


@pytest.mark.virtual_time
async def test_a_gate_that_was_down_when_a_hold_ended_is_told_when_it_is_back() -> None:
    """Else it would hold for a minute more, and nobody could end that: the agent is not paused."""
    async with gates() as made:
        heard: list[bool] = []
        made.bus.subscribe(
            channel_name("/hold", Hold), lambda _, data: heard.append(decode(Hold, data, channel="/hold").hold)
        )
        made.say("robot1/gate", HOLDING)
        await asyncio.sleep(1.0)
        assert heard == [], "that is a hold from before it, which may have to last"
        made.want("paused")
        await asyncio.sleep(0.1)
        made.want("")
        await asyncio.sleep(5.0)
        heard.clear()
        made.say("robot1/gate", HOLDING)
        await asyncio.sleep(1.0)
        made.say("robot1/gate", {**HOLDING, "holds": ["robot2/agent"]})
        await asyncio.sleep(5.0)
        assert heard == [False] * RELEASES
        made.want("paused")
        made.say("robot1/gate", HOLDING)
        await asyncio.sleep(0.1)
        assert heard[RELEASES:] == [True]


@pytest.mark.feature("B3")
@pytest.mark.parametrize(
    ("said", "problem", "text"),
    [
        ({"listens": False, "holds": [], "still": True}, "deaf", "it does not listen to /hold"),
        ({"listens": True, "holds": [], "still": True}, "not_holding", "it does not hold for robot1/agent"),
        (
            {"listens": True, "holds": ["robot2/agent"], "still": True},
            "not_holding",
            "it does not hold for robot1/agent, only for robot2/agent",
        ),
        ({**HOLDING, "still": False}, "moving", "it holds skills, but the base is driven"),
        (None, "silent", "it has been silent for 1 s"),
        ("{", "deaf", "it does not listen to /hold"),
        ("3" * 10_000, "deaf", "it does not listen to /hold"),
        ("held", "deaf", "it does not listen to /hold"),
    ],
)
@pytest.mark.virtual_time
async def test_a_gate_that_does_not_confirm_is_named_with_the_reason(said: object, problem: str, text: str) -> None:
    async with gates() as made:
        made.say("robot1/gate", {"listens": True, "holds": [], "still": True})
        made.say("robot1/second", HOLDING)
        await asyncio.sleep(0.1)
        began = clock.monotonic()
        made.want("paused")
        asking = asyncio.create_task(made.hold.confirmed())
        for _ in range(10):
            await asyncio.sleep(0.09)
            made.say("robot1/second", HOLDING)
            if said is not None:
                made.say("robot1/gate", said)
        view = await asking
        assert clock.monotonic() - began == pytest.approx(1.0), "not sooner, not later"
        assert view.held == ("robot1/second",)
        assert [(one.gate, one.problem, one.text) for one in view.not_held] == [("robot1/gate", problem, text)]
        assert str(view) == f"NOT held: robot1/gate: {text}"


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_it_is_held_once_all_have_said_so_since_and_old_reports_do_not_count() -> None:
    async with gates() as made:
        for gate in ("robot1/gate", "robot1/arm/gate"):
            made.say(gate, HOLDING)
        made.say("robot2/gate", {"listens": False, "holds": [], "still": False})
        await asyncio.sleep(0.2)
        made.want("paused")
        began = clock.monotonic()
        asking = asyncio.create_task(made.hold.confirmed())
        await asyncio.sleep(0.3)
        made.say("robot1/gate", HOLDING)
        await asyncio.sleep(0.3)
        assert not asking.done(), "the other's word is from before"
        made.say("robot1/arm/gate", HOLDING)
        view = await asking
        assert clock.monotonic() - began == pytest.approx(0.6)
        assert str(view) == "held by robot1/arm/gate, robot1/gate"
        assert (await made.hold.confirmed()).confirmed, "asked again, at once"
        assert clock.monotonic() - began == pytest.approx(0.6)


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_an_agent_in_no_namespace_is_responsible_for_all_and_without_gates_nothing_is_confirmed() -> None:
    async with gates("agent") as made:
        made.want("paused")
        view = await made.hold.confirmed()
        assert str(view) == "NOT held: no velocity gate was heard, nothing confirms that a robot stands"
        assert not view.confirmed
        made.say("robot7/gate", HOLDING)
        await asyncio.sleep(0.01)
        assert [gate.gate for gate in (await made.hold.confirmed()).not_held] == ["robot7/gate"]


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_an_agent_whose_hold_goes_to_another_namespace_asks_the_gates_that_listen_there() -> None:
    async with gates("helper/agent", "/robot1/hold") as made:
        for gate, topic in (("robot1/gate", "/robot1/hold"), ("robot2/gate", "/robot2/hold")):
            made.say(gate, {**HOLDING, "channel": channel_name(topic, Hold), "holds": []})
        made.want("paused")
        await asyncio.sleep(0.1)
        asking = asyncio.create_task(made.hold.confirmed())
        made.say("robot1/gate", {**HOLDING, "channel": channel_name("/robot1/hold", Hold), "holds": ["helper/agent"]})
        assert str(await asking) == "held by robot1/gate"
        made.say("robot1/gate", "{")
        made.say("helper/gate", {**HOLDING, "channel": channel_name("/helper/hold", Hold), "holds": []})
        await until(lambda: made.hold.shown is not None and len(made.hold.shown.not_held) == 2)
        assert [gate.problem for gate in (await made.hold.confirmed()).not_held] == ["not_holding", "deaf"]


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_a_gate_that_stops_confirming_shows_up_and_so_does_its_return() -> None:
    async with gates() as made:
        made.want("paused")
        made.say("robot1/gate", HOLDING)
        await asyncio.sleep(0.01)
        assert str(made.hold.shown) == "held by robot1/gate"
        heard = clock.monotonic()
        await until(lambda: made.hold.shown is not None and made.hold.shown.not_held)
        assert clock.monotonic() - heard == pytest.approx(ALIVE_S, abs=0.25)
        assert [event["text"] for event in made.events] == [
            "the robot is held by robot1/gate",
            "the robot is NOT held: robot1/gate: it has been silent for 2 s",
        ]
        await asyncio.sleep(60)
        assert len(made.events) == 2, "that it lasts is no event"
        assert len(made.changes) < 15
        made.say("robot1/gate", HOLDING)
        await asyncio.sleep(0.01)
        assert made.events[-1]["held"] == ["robot1/gate"]
        made.want("")
        assert made.hold.shown is None
