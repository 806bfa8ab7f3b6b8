"""Calls end as documented while the robot's half and the bridge can't hear each other, in virtual time."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.sending.call_sender import MOST_CANCELS
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.module import Module, RunContext
from dimos_streams.skill import Call, skill
from dimos_streams.streams import Out
from dimos_streams.testing import CrashablePart, Faults, ModuleHarness, PartGateway
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
from dimos_streams.tool_stream.hosting.host import SkillHost
from dimos_streams.tool_stream.hosting.loss import LossWatch
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, REQUESTS
from dimos_streams.tool_stream.protocol.close_data import TO_END
from tests.helpers import until

CMD_VEL = channel_name("/cmd_vel", Twist)
AHEAD = Twist(linear=Vector3(x=0.3))


class Walker(Module):
    """Drives, in several ways of obeying."""

    cmd_vel: Out[Twist]

    async def _drive(self, call: Call, seconds: float) -> str:
        await call.update("driving")
        try:
            for _ in range(round(seconds / 0.1)):
                self.cmd_vel.publish(AHEAD)
                call.progress("driving on")
                await asyncio.sleep(0.1)
            return "there"
        finally:
            self.cmd_vel.publish(Twist())

    @skill(motion=True)
    async def drive(self, call: Call, seconds: float = 60.0) -> str:
        """Drive."""
        return await self._drive(call, seconds)

    @skill(resources={"base"})
    async def dance(self, call: Call, seconds: float = 60.0) -> str:
        """Hold the base, and say nothing of motion."""
        return await self._drive(call, seconds)

    @skill(motion=True, on_loss="continue")
    async def cross(self, call: Call, seconds: float = 60.0) -> str:
        """Cross a room in which there is no network."""
        return await self._drive(call, seconds)

    @skill(motion=True)
    async def ignore(self, call: Call, seconds: float = 60.0) -> str:
        """Drive on, whatever happens."""
        end = clock.monotonic() + seconds
        while clock.monotonic() < end:
            try:
                self.cmd_vel.publish(AHEAD)
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue
        return "there"

    @skill(motion=True)
    def drive_in_a_thread(self, call: Call) -> None:
        """Drive in a thread, which nothing cancels."""
        while not self.threads.end.wait(0.02):
            call.loop.call_soon_threadsafe(self.cmd_vel.publish, AHEAD)
            self.threads.started.set()

    @skill
    async def watch(self, call: Call, seconds: float = 60.0) -> str:
        """Move nothing."""
        await call.update("watching")
        await asyncio.sleep(seconds)
        return "watched"

    @skill
    async def watch_then(self, call: Call, then: str) -> str:
        """Move nothing, and go on with something else."""
        return await call.skills.start(then, {})

    async def start(self) -> None:
        self.threads = Threads()


class Threads:
    """A skill's thread as a test sees it."""

    def __init__(self) -> None:
        self.started, self.end = threading.Event(), threading.Event()


@dataclass
class SplitRobot:
    """A bridge and a robot's half, each with its own access to the bus."""

    bus: Bus
    bridge: CrashablePart
    robot: CrashablePart
    gateway: PartGateway
    moved_at: list[float]
    """The times at which the robot was commanded to move."""

    @property
    def host(self) -> SkillHost:
        life = self.robot._life
        assert life is not None
        return life.host._skills

    async def begin(self, skill: str, **options: Any) -> str:
        """Call a skill; its id, once it has answered."""
        call_id = await self.gateway.call(skill, options.pop("arguments", {}), caller="test", **options)
        await self.until(call_id, lambda view: view.answer is not None or view.state == "open")
        await asyncio.sleep(0.5)
        return call_id

    async def view(self, call_id: str) -> CallView:
        return next(view for view in await self.gateway.calls() if view.call_id == call_id)

    async def health(self) -> str:
        """The health of the robot's module, as the bridge hears it."""
        bridge = self.bridge.module("bridge")
        assert isinstance(bridge, Bridge)
        view = bridge.broker.directory.module("walker")
        assert view is not None
        return view.health

    async def until(self, call_id: str, condition: Callable[[CallView], bool]) -> CallView:
        async with asyncio.timeout(90):
            while not condition(view := await self.view(call_id)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return view

    async def closed(self, call_id: str) -> CallView:
        return await self.until(call_id, lambda view: view.state == "closed")

    async def cut(self, seconds: float) -> None:
        """Let nothing through between the two for a while."""
        self.robot.bus.partitioned = True
        await asyncio.sleep(seconds)
        self.robot.bus.partitioned = False

    async def agreed(self, call_id: str) -> Outcome | None:
        """The outcome of which both sides know a moment after the link is back."""
        await asyncio.sleep(0.6)
        view = await self.view(call_id)
        assert self.host.outcome(call_id) is view.outcome
        assert not self.host.publisher.heartbeat_calls("walker"), "nothing is left to report"
        return view.outcome


@asynccontextmanager
async def split_robot(loss_bound_s: float = 2.0) -> AsyncIterator[SplitRobot]:
    bus = create_bus("memq://")
    await bus.open()
    context = RunContext(loss_bound_s=loss_bound_s)
    bridge = CrashablePart(bus, lambda context: [Bridge({"http": False}, name="bridge", context=context)])
    robot = CrashablePart(bus, lambda context: [Walker(name="walker", context=context)], context=context)
    gateway = PartGateway(bridge, random=random.Random(0))
    moved_at: list[float] = []

    def on_velocity(channel: str, data: bytes) -> None:
        if decode(Twist, data, channel=channel).linear.x:
            moved_at.append(clock.monotonic())

    # What drives is on the robot's side of any cut.
    await bridge.start()
    await robot.start()
    inner = robot.bus
    original = inner.publish

    def publish(channel: str, data: bytes) -> None:
        if channel == CMD_VEL:
            on_velocity(channel, data)
        original(channel, data)

    inner.publish = publish  # type: ignore[method-assign]
    await asyncio.sleep(0.5)
    world = SplitRobot(bus, bridge, robot, gateway, moved_at)
    try:
        yield world
    finally:
        await robot.stop()
        await bridge.stop()
        await bus.close()


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
@pytest.mark.parametrize("skill_name", ["drive", "dance"])
async def test_a_cut_ends_what_moves_within_the_bound(skill_name: str) -> None:
    async with split_robot() as world:
        call_id = await world.begin(skill_name)
        began = clock.monotonic()
        await world.cut(6.0)
        assert 1.7 <= world.moved_at[-1] - began <= 2.2
        assert world.host.outcome(call_id) is Outcome.LOST
        assert (await world.view(call_id)).text.startswith("module 'walker' is gone")
        assert await world.agreed(call_id) is Outcome.LOST


@pytest.mark.virtual_time
async def test_the_bound_is_a_setting() -> None:
    async with split_robot(loss_bound_s=4.0) as world:
        await world.begin("drive")
        began = clock.monotonic()
        await world.cut(6.0)
        assert 3.7 <= world.moved_at[-1] - began <= 4.2


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_a_short_cut_changes_nothing() -> None:
    async with split_robot() as world:
        call_id = await world.begin("drive", arguments={"seconds": 4.0})
        await world.cut(1.0)
        view = await world.closed(call_id)
        assert (view.outcome, view.text) == (Outcome.COMPLETED, "there")
        assert await world.agreed(call_id) is Outcome.COMPLETED
        assert len(world.moved_at) == 40


@pytest.mark.virtual_time
async def test_a_cut_that_only_the_bridge_minds() -> None:
    """Between the bridge's bound and the host's: the bridge has closed the call, and the host learns it."""
    async with split_robot() as world:
        call_id = await world.begin("drive")
        await world.cut(1.9)
        back = clock.monotonic()
        assert (await world.view(call_id)).outcome is Outcome.LOST
        assert await world.agreed(call_id) is Outcome.LOST
        assert world.moved_at[-1] - back <= 0.3


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
@pytest.mark.parametrize(
    ("skill_name", "more"),
    [("drive", ""), ("ignore", "; it did not end within 0.5 s, so its velocities are cut off")],
)
async def test_a_cut_of_one_direction_is_reported_in_the_stream(skill_name: str, more: str) -> None:
    """The bridge hears the robot, and the robot does not hear that it does."""
    async with split_robot() as world:
        call_id = await world.begin(skill_name, arguments={"seconds": 10.0})
        began = clock.monotonic()
        world.bridge.bus.faults = Faults(loss=1.0, affects=lambda channel: channel == REQUESTS)
        view = await world.closed(call_id)
        assert view.outcome is Outcome.LOST
        ended = "nobody has acknowledged this call for 2 s, so it was ended and the robot was stopped"
        assert view.text == ended + more
        assert world.moved_at[-1] - began <= (2.8 if more else 2.2)
        world.bridge.bus.faults = Faults()
        assert await world.agreed(call_id) is Outcome.LOST


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_what_the_robot_gives_up_that_was_to_end_anyway_says_for_which_reason_it_was() -> None:
    async with split_robot() as world:
        call_id = await world.begin("ignore", arguments={"seconds": 10.0})
        await world.gateway.cancel(call_id, "come back")
        world.bridge.bus.faults = Faults(loss=1.0, affects=lambda channel: channel == REQUESTS)
        assert (await world.closed(call_id)).outcome is Outcome.LOST
        bridge = world.bridge.module("bridge")
        assert isinstance(bridge, Bridge)
        call = bridge.broker.ledger.calls.get(call_id)
        assert call is not None
        assert call.last is not None
        assert call.last.data[TO_END] == "come back"


def _deafen(world: SplitRobot, *, reported: bool) -> None:
    """From now on the bridge hears nothing of the robot, which hears all that the bridge says but, perhaps, ends."""
    world.robot.bus.faults = Faults(loss=1.0)
    if not reported:
        world.bridge.bus.faults = Faults(loss=1.0, affects=lambda channel: channel == CANCELS)


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
@pytest.mark.parametrize("reported", [True, False])
async def test_a_cut_of_the_other_way_ends_what_moves_within_the_bound(reported: bool) -> None:
    """The robot hears the bridge, which does not hear it: neither what the bridge closes nor that it hears itself do
    so is a sign that it answers for the call."""
    async with split_robot() as world:
        call_id = await world.begin("drive")
        began = clock.monotonic()
        _deafen(world, reported=reported)
        await asyncio.sleep(6.0)
        assert world.moved_at[-1] - began <= (1.8 if reported else 2.2)
        assert world.host.outcome(call_id) is Outcome.LOST
        world.robot.bus.faults = world.bridge.bus.faults = Faults()
        assert await world.agreed(call_id) is Outcome.LOST


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.parametrize("skill_name", ["watch", "cross"])
async def test_what_the_bridge_gives_up_unheard_ends(skill_name: str) -> None:
    """Also what moves nothing, and what was to go on for as long as the bridge waits for it."""
    async with split_robot() as world:
        call_id = await world.begin(skill_name, arguments={"seconds": 600.0})
        _deafen(world, reported=True)
        view = await world.closed(call_id)
        await asyncio.sleep(0.2)
        assert view.outcome is Outcome.LOST
        assert world.host.outcome(call_id) is Outcome.LOST


@pytest.mark.virtual_time
async def test_that_a_call_is_lost_is_sent_again_but_not_for_ever() -> None:
    async with split_robot() as world:
        reported: list[float] = []
        world.bus.subscribe(CANCELS, lambda channel, data: reported.append(clock.monotonic()))
        call_id = await world.begin("watch", arguments={"seconds": 600.0})
        world.robot.crash()
        await world.closed(call_id)
        await asyncio.sleep(30.0)
        assert len(reported) == MOST_CANCELS
        assert 8.0 < reported[-1] - reported[0] < 10.0


@pytest.mark.virtual_time
async def test_a_cancel_of_a_call_that_was_given_up_unheard_goes_out() -> None:
    """The bridge could not say at the time that it had closed the call; now only its own words get through."""
    async with split_robot() as world:
        call_id = await world.begin("watch", arguments={"seconds": 600.0})
        world.robot.bus.partitioned = True
        await world.closed(call_id)
        await asyncio.sleep(15.0)
        world.robot.bus.partitioned, world.robot.bus.faults = False, Faults(loss=1.0)
        await asyncio.sleep(3.0)
        assert world.host.outcome(call_id) is None
        await world.gateway.cancel(call_id, "come back")
        await asyncio.sleep(0.1)
        assert world.host.outcome(call_id) is Outcome.LOST


@pytest.mark.virtual_time
async def test_what_ends_during_a_cut_ends_as_the_bridge_has_said() -> None:
    async with split_robot() as world:
        call_id = await world.begin("watch", arguments={"seconds": 2.0})
        await world.cut(4.0)
        assert world.host.outcome(call_id) is Outcome.COMPLETED
        assert (await world.view(call_id)).outcome is Outcome.LOST
        assert await world.agreed(call_id) is Outcome.LOST


@pytest.mark.virtual_time
async def test_what_moves_nothing_goes_on_until_the_link_is_back() -> None:
    async with split_robot() as world:
        call_id = await world.begin("watch")
        await world.cut(6.0)
        assert world.host.outcome(call_id) is None
        assert await world.agreed(call_id) is Outcome.LOST


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("skill_name", "asked", "goes_on"),
    [
        ("drive", None, False),
        ("drive", "continue", True),
        ("cross", None, True),
        ("cross", "stop", False),
        ("watch", "continue", True),
    ],
)
async def test_who_decides_whether_a_call_goes_on(skill_name: str, asked: Any, goes_on: bool) -> None:
    async with split_robot() as world:
        call_id = await world.begin(skill_name, arguments={"seconds": 12.0}, on_loss=asked)
        assert (await world.view(call_id)).on_loss == ("continue" if goes_on else "stop")
        await world.cut(6.0)
        view = await world.view(call_id)
        assert (view.state, view.outcome) == (("open", None) if goes_on else ("closed", Outcome.LOST))
        assert (await world.closed(call_id)).outcome is (Outcome.COMPLETED if goes_on else Outcome.LOST)
        await world.agreed(call_id)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_call_that_goes_on_is_given_up_at_last() -> None:
    async with split_robot() as world:
        call_id = await world.begin("cross", arguments={"seconds": 600.0})
        world.robot.bus.partitioned = True
        await asyncio.sleep(58.0)
        assert (await world.view(call_id)).state == "open"
        await world.cut(4.0)
        assert (await world.view(call_id)).outcome is Outcome.LOST
        assert await world.agreed(call_id) is Outcome.LOST


@pytest.mark.virtual_time
async def test_a_call_that_goes_on_ends_with_its_process() -> None:
    async with split_robot() as world:
        call_id = await world.begin("cross")
        world.robot.crash()
        await asyncio.sleep(3.0)
        assert (await world.view(call_id)).state == "open"
        await world.robot.start()
        await asyncio.sleep(2.0)
        assert (await world.view(call_id)).outcome is Outcome.LOST


@pytest.mark.virtual_time
async def test_a_cancel_into_a_cut_counts_when_the_link_is_back() -> None:
    async with split_robot() as world:
        call_id = await world.begin("cross")
        world.robot.bus.partitioned = True
        await world.gateway.cancel(call_id, "come back")
        await asyncio.sleep(30.0)
        world.robot.bus.partitioned = False
        assert await world.agreed(call_id) is Outcome.CANCELLED
        assert (await world.view(call_id)).text == "come back"


@pytest.mark.virtual_time
@pytest.mark.parametrize(("asked", "goes_on"), [("continue", True), (None, False)])
async def test_a_continuation_takes_what_its_caller_asked_for(asked: Any, goes_on: bool) -> None:
    async with split_robot() as world:
        first = await world.begin("watch_then", arguments={"then": "drive"}, on_loss=asked)
        child = (await world.closed(first)).result
        await world.cut(4.0)
        assert (await world.view(child)).state == ("open" if goes_on else "closed")
        assert world.host.outcome(child) is (None if goes_on else Outcome.LOST)


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_a_skill_that_ignores_its_end_moves_nothing() -> None:
    async with split_robot() as world:
        call_id = await world.begin("ignore", arguments={"seconds": 10.0})
        began = clock.monotonic()
        await world.cut(5.0)
        assert world.moved_at[-1] - began <= 2.8
        assert await world.agreed(call_id) is Outcome.LOST

        assert await world.health() == f"call {call_id} does not end; velocities are cut off"
        refused = await world.closed(await world.gateway.call("drive", {}, caller="test"))
        assert refused.outcome is Outcome.REJECTED
        assert f"its call {call_id} does not end" in refused.text

        await asyncio.sleep(5.0)
        assert (
            await world.closed(await world.gateway.call("drive", {"seconds": 1.0}, caller="test"))
        ).text == "there"


@pytest.mark.virtual_time
@pytest.mark.feature("K4")
async def test_a_call_that_ignores_its_end_is_cancelled_with_its_module_and_moves_nothing_then() -> None:
    async with split_robot() as world:
        call_id = await world.begin("ignore", arguments={"seconds": 10.0})
        life, began = world.robot._life, clock.monotonic()
        assert life is not None
        await life.host.stop("an operator restarts module 'legs'")
        ended = await world.closed(call_id)
        assert ended.outcome is Outcome.CANCELLED
        assert ended.text.startswith("an operator restarts module 'legs'; it did not end within 2 s, at await ")
        await asyncio.sleep(10.0)
        assert world.moved_at[-1] - began <= 2.1


@pytest.mark.virtual_time
async def test_a_call_of_a_script_without_a_bridge_runs_on() -> None:
    """Nobody has ever acknowledged it, and nobody said that somebody would."""
    async with split_robot() as world:
        world.bridge.crash()
        for call_id, on_loss in (("by-hand", ""), ("by-bridge", "stop"), ("nonsense", "perhaps")):
            message = SkillCall(call_id=call_id, module="walker", skill="drive", arguments_json="{}", on_loss=on_loss)
            world.bus.publish(CALLS, encode(message))
        await asyncio.sleep(10.0)
        assert world.host.outcome("by-hand") is None
        assert world.host.outcome("by-bridge") is Outcome.LOST
        assert world.host.outcome("nonsense") is Outcome.REJECTED
        live = {call_id for call_id, _ in world.host.publisher.heartbeat_calls("walker")}
        assert live == {"by-hand", "by-bridge", "nonsense"}, "their ends are kept for who may come"

        await world.bridge.start()
        await asyncio.sleep(1.0)
        assert (await world.view("by-hand")).state == "open"
        await world.cut(4.0)
        assert world.host.outcome("by-hand") is Outcome.LOST, "once somebody listens, it is missed"


@pytest.mark.virtual_time
async def test_a_host_that_was_held_up_itself_has_heard_nothing_in_that_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModuleHarness(Walker, name="walker") as harness:
        call = await harness.call("drive")
        await asyncio.sleep(0.5)
        host = harness._host._skills
        harness._receiver.stop()
        for subscription in harness._subscriptions:
            subscription.close()
        with monkeypatch.context() as held_up:
            held_up.setattr(LossWatch, "look", lambda watch, calls: None)
            await asyncio.sleep(5.0)
        await asyncio.sleep(1.2)
        assert host.outcome(call.id) is None, "half a second counts of it"
        await asyncio.sleep(0.8)
        assert host.outcome(call.id) is Outcome.LOST


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("skill_name", "still_s", "outcome"),
    [("drive", 9.0, None), ("drive", 11.0, Outcome.LOST), ("watch", 11.0, None)],
)
async def test_nothing_moves_on_after_a_machine_has_slept(
    skill_name: str, still_s: float, outcome: Outcome | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the clock that counts sleep goes on meanwhile."""
    async with ModuleHarness(Walker, name="walker") as harness:
        call = await harness.call(skill_name)
        await asyncio.sleep(0.5)
        monkeypatch.setattr(clock, "steady", lambda: clock.monotonic() + still_s)
        await asyncio.sleep(0.5)
        assert harness._host._skills.outcome(call.id) is outcome
        if outcome is not None:
            assert "stood still for 11 s, so the robot was stopped" in (await call.closed()).text
            assert harness.sent("cmd_vel")[-1] == Twist()
        call.cancel()
        await call.closed()


def test_a_thread_of_a_call_that_has_ended_moves_nothing() -> None:
    """In real time: in virtual time work for threads runs inline."""

    async def main() -> None:
        async with ModuleHarness(Walker, name="walker") as harness:
            walker = harness.module
            assert isinstance(walker, Walker)
            call = await harness.call("drive_in_a_thread")
            await asyncio.to_thread(walker.threads.started.wait)
            call.cancel("enough")
            assert (await call.closed()).outcome is Outcome.CANCELLED
            await until(lambda: harness.sent("cmd_vel") and not harness.sent("cmd_vel")[-1].linear.x)
            before = len(harness.sent("cmd_vel"))
            await asyncio.sleep(0.1)
            assert len(harness.sent("cmd_vel")) == before
            refused = await harness.call("drive")
            assert (await refused.closed()).outcome is Outcome.REJECTED
            walker.threads.end.set()
            while (close := await (await harness.call("drive", seconds=0.1)).closed()).outcome is Outcome.REJECTED:
                pass
            assert close.data["result"] == "there"

    asyncio.run(asyncio.wait_for(main(), 10))
