"""Paused, held: said only when the velocity gates have said so; and what holds the robot when a call is given up."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from dimos_streams import clock
from dimos_streams.agent.control.robot_hold import RobotHold
from dimos_streams.agent.control.undo import Undoing
from dimos_streams.agent.control.undo_log import UndoEntry
from dimos_streams.agent.control.undo_pause import UndoPause
from dimos_streams.agent.missions.stop_conditions import Progress
from dimos_streams.agent.module import Agent
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import Hold, ModuleStatus
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.operator.holding import RELEASES
from dimos_streams.operator.messages.waiting import waiting_lines
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.runtime.live.slots import START_BOUND_S
from dimos_streams.runtime.options import RunOptions
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.agent.stage import calling, script
from tests.bridge.monitor.watching_client import Console
from tests.helpers import until

HOLDING = {"listens": True, "holds": ["robot1/agent"], "still": True}


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


class NoConfig(ModuleConfig):
    """Nothing to set."""


class Robot(Module):
    """Drives, whatever it is asked."""

    config: NoConfig
    skill_vel: Out[Twist]

    async def start(self) -> None:
        self.released = asyncio.Event()

    @skill(motion=True, on_duplicate="replace")
    async def drive(self, call: Call) -> str:
        """Drive until the test ends it, and not when it is cancelled."""
        await call.update("driving")
        while not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                self.skill_vel.publish(Twist(linear=Vector3(x=0.2)))
                await asyncio.sleep(0.05)
        return "arrived"

    @skill(concurrent=True)
    async def stare(self, call: Call) -> str:
        """Sense until the test ends it, and not when it is cancelled."""
        await call.update("staring")
        while not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        return "seen"


@dataclass
class HoldStage:
    """A robot that does not obey its skills' cancellation, its gate, a bridge and an agent."""

    harness: ModuleHarness
    bridge: Bridge
    agent: Agent
    robot: Robot

    @property
    def speed(self) -> float:
        """The velocity that the gate has let pass last."""
        return float(self.harness.sent("cmd_vel")[-1].linear.x)


@contextlib.asynccontextmanager
async def hold_stage(
    config: Mapping[str, Any] | None = None, *, gate: bool = True, unwired: tuple[str, ...] = ()
) -> AsyncIterator[HoldStage]:
    context = RunContext()
    bridge = Bridge({"http": False}, name="bridge", context=context)
    async with ModuleHarness(bridge) as harness:
        robot = Robot(name="robot", context=context)
        await harness.add(robot)
        if gate:
            await harness.add(VelocityGate(name="gate", context=context), unwired=("scan", *unwired))
        agent = Agent({"plan": {"motions": None}, **(config or {})}, name="agent", context=context)
        await harness.add(agent)
        yield HoldStage(harness, bridge, agent, robot)
        robot.released.set()
        assert harness.failed() is None


Scenario = Callable[[HoldStage], Any]


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_pause_says_held_when_the_gate_lets_nothing_pass_any_more() -> None:
    async with hold_stage() as made:
        console = Console(made.bridge.monitor.watch())
        driving = await made.harness.call("drive")
        await until(lambda: made.harness.sent("cmd_vel") and made.speed > 0.15)
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
        holds = {"listens": True, "channel": "/hold#dimos_streams.Hold", "holds": ["agent"], "still": True}
        assert line["state"]["velocity_gate"] == {**holds, "max_speed": 1.0, "max_turn": 1.8}
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
        await until(lambda: made.harness.sent("cmd_vel") and made.speed > 0.15)
        ended = await (await made.harness.call(command)).closed()
        assert "NOT held: gate: it does not listen to /hold" in ended.text.splitlines()[0]
        assert ended.data["result"]["held"] == []
        assert ended.data["result"]["not_held"][0]["gate"] == "gate"
        assert made.speed > 0.15, "it drives on, and nobody was told otherwise"
        if command == "pause":
            await until(lambda: console.agent("agent").get("hold"))
            assert console.agent("agent")["hold"]["not_held"][0]["problem"] == "deaf"
        await console.close()


async def deadline(made: HoldStage) -> str:
    return "the mission that led to this call was ended: deadline"


async def withdrawn(made: HoldStage) -> str:
    (mission,) = made.agent.core.loop.missions.values()
    mission.end("cancelled")
    return "the operator has withdrawn what led to this call"


async def aborted(made: HoldStage) -> str:
    report = await (await made.harness.call("abort")).closed()
    assert report.text.splitlines()[0] == "aborted: 1 mission, 1 call; the robot is held by gate"
    return "aborted by the operator"


async def over_time(made: HoldStage) -> str:
    return "it ran longer than 4 s"


async def replaced(made: HoldStage) -> str:
    return "another call was to take its place"


async def stopped(made: HoldStage) -> str:
    return "the mission that led to this call was ended: battery: 5% left"


def battery_empty(progress: Progress) -> str | None:
    """Empty once it drives."""
    return "battery: 5% left" if progress.executed else None


async def undone(made: HoldStage) -> str:
    (call,) = made.agent.core.calls.known.open
    (mission,) = made.agent.core.loop.missions.values()
    entry = UndoEntry(call_id=call.call_id, skill="drive", arguments={})
    core = made.agent.core
    pause = UndoPause(core.control, core.events.emit, lambda entry: False)
    await Undoing(core.calls, core.events.emit, settle_s=1.0, timeout_s=1.0, pause=pause).end([entry])
    mission.end("cancelled")
    return "it is undone"


CONFIG: dict[Any, dict[str, Any]] = {
    deadline: {"limits": {"deadline_s": 5}},
    over_time: {"limits": {"call_timeout_s": 4}},
    stopped: {"stop_when": {"conditions": [f"{__name__}:battery_empty"]}},
}

AFTER_S: dict[Any, float] = {deadline: 4.9, over_time: 3.9, replaced: 9.9}


@pytest.mark.slow
@pytest.mark.feature("B5", "D2")
@pytest.mark.parametrize("end", [deadline, withdrawn, aborted, over_time, replaced, stopped, undone])
@pytest.mark.virtual_time
async def test_whatever_gives_a_call_up_holds_the_robot_and_the_mission_says_so(
    end: Scenario, tmp_path: Path
) -> None:
    turns = [calling("drive")] * (2 if end is replaced else 1)
    async with hold_stage({**CONFIG.get(end, {}), **script(tmp_path / "turns", *turns)}) as made:
        said = await made.harness.call("say", text="drive")
        await until(lambda: made.harness.sent("cmd_vel") and made.speed > 0.15)
        await asyncio.sleep(AFTER_S.get(end, 0.0))
        began = clock.monotonic()
        why = await end(made)
        await until(lambda: made.speed == 0.0)
        assert clock.monotonic() - began < 3.0
        assert made.agent.core.control.paused
        await until(lambda: made.agent.core.calls.memory.given_up)
        # Where the mission itself goes on, it waits for the operator.
        closed = await said.closed() if end not in (over_time, replaced) else None
        (left,) = made.agent.core.calls.memory.given_up
        expected = f"drive (call {left.call_id}) may still run; the robot is held by gate"
        if closed is not None:
            assert closed.data["result"]["unfinished"] == [expected]
            assert expected in closed.text
        assert left.close is not None
        assert left.close.text.startswith(why)
        assert left.close.text.endswith("may still run; the robot is held by gate")

        # It drives on in its own mind: an abort does not let the robot go, its end does not, an operator does.
        again = await (await made.harness.call("abort")).closed()
        assert again.data["result"]["unfinished"] == [left.call_id]
        await asyncio.sleep(20)
        assert made.speed == 0.0
        made.robot.released.set()
        await until(lambda: not made.agent.core.calls.memory.given_up)
        assert made.agent.core.control.paused
        await (await made.harness.call("resume")).result()
        assert not made.agent.core.holding


@pytest.mark.feature("B3")
@pytest.mark.virtual_time
async def test_a_pause_outlives_its_agent_until_one_that_hung_has_begun_again() -> None:
    async with hold_stage() as made:
        await made.harness.call("drive")
        await until(lambda: made.harness.sent("cmd_vel") and made.speed > 0.15)
        await (await made.harness.call("pause")).closed()
        await made.agent.end_tasks()
        before = len(made.harness.sent("cmd_vel"))
        await asyncio.sleep(RunOptions(bus_url="memq://").hang_bound_s + START_BOUND_S)
        assert {twist.linear.x for twist in made.harness.sent("cmd_vel")[before:]} == {0.0}


@pytest.mark.feature("B5")
@pytest.mark.virtual_time
async def test_an_agent_that_stops_before_its_cancelled_calls_have_ended_leaves_the_robot_held(
    tmp_path: Path,
) -> None:
    async with hold_stage(script(tmp_path / "turns", calling("drive"))) as made:
        await made.harness.call("say", text="drive")
        await until(lambda: made.harness.sent("cmd_vel") and made.speed > 0.15)
        await withdrawn(made)
        await asyncio.sleep(0.2)
        await made.agent.end_tasks()
        await made.agent.stop()
        await until(lambda: made.speed == 0.0, 1.0)
        await asyncio.sleep(10)
        assert made.speed == 0.0


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


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_a_call_that_only_senses_is_given_up_without_holding_the_robot(tmp_path: Path) -> None:
    config = {"limits": {"deadline_s": 5}, **script(tmp_path / "turns", calling("stare"))}
    async with hold_stage(config) as made:
        closed = await (await made.harness.call("say", text="stare")).closed()
        (unfinished,) = closed.data["result"]["unfinished"]
        assert unfinished.endswith(") may still run")
        assert not made.agent.core.holding


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_where_no_gate_confirms_the_mission_says_that_nothing_does(tmp_path: Path) -> None:
    config = {"limits": {"deadline_s": 5}, **script(tmp_path / "turns", calling("drive"))}
    async with hold_stage(config, gate=False) as made:
        closed = await (await made.harness.call("say", text="drive")).closed()
        (unfinished,) = closed.data["result"]["unfinished"]
        assert "the robot is NOT held: no velocity gate was heard" in unfinished
