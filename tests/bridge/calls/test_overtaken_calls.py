"""What was asked for before an order of an operator, and waits, does not begin after it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.overruling import check_overruled, overrule
from dimos_streams.bridge.calls.stops.stop_state import StopState
from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.operator.messages.stop import Stop
from dimos_streams.operator.robot_orders import NO_ORDER, newest_order
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.overtaken import OrderKind
from tests.bridge.calls.driven_robots import Gripper, Watcher, driven_robots, of
from tests.bridge.scene import answered, closed, scene
from tests.helpers import until

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("K5")]


@pytest.mark.parametrize("order", ["stop", "cancel"])
async def test_what_waits_for_what_an_order_ends_does_not_begin(order: str) -> None:
    async with driven_robots("robot1") as made:
        broker = made.world.broker
        await made.world.add(Gripper(**of("robot1", "gripper")))
        await made.world.offered("robot1_hold_tight")

        def hold_tight(caller: str, wait_s: float = 0.0) -> Coroutine[Any, Any, str]:
            return broker.call("robot1_hold_tight", {}, caller=caller, on_duplicate="allow", lease_wait_s=wait_s)

        await answered(broker, await hold_tight("a"))
        waiting = asyncio.create_task(hold_tight("b", 60.0))
        await asyncio.sleep(1.0)
        if order == "stop":
            await asyncio.gather(broker.stops.stop_robot("", ""), broker.stops.release(""))
        else:
            await broker.cancels.cancel_all("", "")
        with pytest.raises(CallRejectedError, match="since it was asked for"):
            await waiting
        assert await hold_tight("c")


async def test_a_call_that_names_the_newest_order_it_knew_moves_nothing_after_a_newer_one_for_its_robot() -> None:
    async with driven_robots("robot1", "robot2") as made:
        broker = made.world.broker

        async def follow(robot: str, known: int) -> str:
            return await broker.call(f"{robot}_follow", {"description": "x"}, caller="a", robot_order=known)

        await asyncio.gather(broker.stops.stop_robot("robot1", ""), broker.stops.release("robot1"))
        newest = newest_order(await broker.robot_orders(), "robot1")
        with pytest.raises(CallRejectedError, match="stopped the robot since it was asked for"):
            await follow("robot1", newest - 1)
        for robot, known in (("robot1", newest), ("robot2", NO_ORDER)):
            await answered(broker, await follow(robot, known))
        assert await broker.call("robot1_search", {}, caller="a", robot_order=NO_ORDER), "it does not move anything"
        await made.world.add(Gripper(name="gripper"))
        await made.world.offered("hold_tight")
        assert await broker.call("hold_tight", {}, caller="a", robot_order=NO_ORDER), "it is no robot's of these"


@pytest.mark.parametrize("restarts", [False, True])
async def test_what_was_asked_for_before_a_stop_moves_nothing_after_the_release(
    restarts: bool, tmp_path: Path
) -> None:
    async with driven_robots("robot1", journal=tmp_path / "journal.sqlite") as made:
        broker, watcher = made.world.broker, Watcher(**of("robot1", "watcher"))
        for module in (Gripper(**of("robot1", "gripper")), watcher):
            await made.world.add(module)
        await made.world.offered("robot1_watch")
        before = await broker.call("robot1_watch", {}, caller="a")
        await answered(broker, before)
        assert str(await broker.stops.stop_robot("", "")).endswith("no motion was under way")
        await broker.stops.release("")
        if restarts:
            await made.world.kill_bridge()
            await made.world.start_bridge()
            broker = made.world.broker
            await made.world.offered("robot1_watch")
        after = await broker.call("robot1_watch", {}, caller="a", on_duplicate="allow")
        await answered(broker, after)
        watcher.seen.set()
        refused = await closed(broker, before)
        assert refused.outcome is Outcome.FAILED
        assert "an operator has stopped the robot since it was asked for" in refused.text
        assert (await closed(broker, after)).outcome is Outcome.COMPLETED


async def test_what_a_script_began_without_the_bridge_after_an_order_begins_what_it_wants() -> None:
    async with driven_robots("robot1") as made:
        broker, watcher = made.world.broker, Watcher(**of("robot1", "watcher"))
        for module in (Gripper(**of("robot1", "gripper")), watcher):
            await made.world.add(module)
        await made.world.offered("robot1_watch")
        await broker.stops.stop_robot("", "")
        await broker.stops.release("")
        await broker.cancels.cancel_all("", "")
        asked = SkillCall(
            utime=clock.utime(), call_id="c1", module="robot1/watcher", skill="robot1_watch", caller="script"
        )
        made.world.inner.publish("/skill_calls#dimos_streams.SkillCall", encode(asked))
        await until(lambda: broker.ledger.calls.get("c1") is not None)
        watcher.seen.set()
        assert (await closed(broker, "c1")).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("caller", "skill", "begins"),
    [
        ("mcp/a", "patrol", False),
        ("mcp/b", "patrol", True),
        ("mcp/b", "follow", False),
        ("a", "follow", True),
    ],
)
async def test_a_model_that_ends_calls_keeps_from_beginning_its_own_and_other_models_motions(
    caller: str, skill: str, begins: bool
) -> None:
    async with scene() as world:
        broker, arguments = world.broker, {"description": "ann"} if skill == "follow" else {}
        running = await broker.call(skill, arguments, caller=caller)
        waiting = asyncio.create_task(broker.call(skill, arguments, caller=caller, on_duplicate="replace"))
        await asyncio.sleep(0)
        assert broker.ledger.waiting
        await broker.cancels.cancel_for_model([running], "enough", "mcp/a")
        with contextlib.nullcontext() if begins else pytest.raises(CallRejectedError, match="since it was asked for"):
            assert (await broker.view(await waiting)).state != "closed"


@pytest.mark.parametrize(
    ("orders", "refused"),
    [
        ({"": "stop"}, True),
        ({"robot1": "stop"}, True),
        ({"robot2": "stop"}, False),
        ({"robot2": "stop", "": "cancel"}, True),
        ({}, False),
    ],
)
def test_an_order_is_about_its_robot(orders: dict[str, OrderKind], refused: bool) -> None:
    call = CallState(call_id="c1", skill="wave", module="robot1/arm", caller="a")
    for robot, kind in orders.items():
        overrule(call, kind, robot)
    overrule(call, "stop", "robot3")
    with pytest.raises(CallRejectedError) if refused else contextlib.nullcontext():
        check_overruled(call, "robot1/arm", may_move=True)


def test_a_stop_is_about_motions_and_the_end_of_all_calls_stays_that() -> None:
    call = CallState(call_id="c1", skill="look", module="robot1/eye", caller="a")
    overrule(call, "stop", "")
    check_overruled(call, "robot1/eye", may_move=False)
    overrule(call, "cancel", "")
    overrule(call, "stop", "")
    with pytest.raises(CallRejectedError, match="all calls were ended since it was asked for"):
        check_overruled(call, "robot1/eye", may_move=False)


def test_the_innermost_word_counts() -> None:
    def stop(robot: str) -> Stop:
        return Stop(robot=robot, utime=1)

    def covered(state: StopState) -> list[str]:
        return [space for space in ("", "a", "a/b", "a/c", "ab") if state.covering(space)]

    everything = StopState().stop(stop(""))
    assert covered(everything) == ["", "a", "a/b", "a/c", "ab"]
    but_a = everything.release("a")
    assert covered(but_a) == ["", "ab"]
    assert covered(but_a.stop(stop("a/b"))) == ["", "a/b", "ab"]
    assert covered(but_a.stop(stop(""))) == covered(everything), "a new order for every robot counts for every robot"
    assert but_a.release("") == StopState()
    one = StopState().stop(stop("a"))
    assert covered(one) == ["a", "a/b", "a/c"]
    assert one.release("a") == one.release("") == StopState()
    assert one.release("b") == one
