"""What tests give the parts they are made of, when it is wrong: one line that says so, as commands do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest import mock

import pytest
from pydantic import BaseModel, ConfigDict, Field

from dimos_streams.bus import create_bus
from dimos_streams.errors import ModuleFailedError, SkillError, UnknownSkillError, UserError
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.skill import Call, skill
from dimos_streams.skills.drive import Drive
from dimos_streams.streams import In, Out
from dimos_streams.testing import FaultBus, Faults, ModuleHarness, Reply, event
from dimos_streams.tool_stream.event import Outcome


class ArmConfig(ModuleConfig):
    reach_m: float = Field(0.5, gt=0)
    joints: int


class Arm(Module):
    """An arm."""

    config: ArmConfig

    @skill
    async def bend(self, joint: int) -> int:
        """Bend a joint."""
        return joint

    @skill
    async def reach(self, call: Call) -> None:
        """Reach through a door."""
        await call.skills.run("open_door")


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        (None, ["module 'Arm' needs the setting 'joints'"]),
        ({"joints": "many"}, ["module 'Arm': joints: it must be a whole number (given: 'many')"]),
        ({"joints": 2, "reach_m": -1}, ["module 'Arm': reach_m: it must be more than 0 (given: -1)"]),
        ({"joints": 2, "reach": 1}, ["module 'Arm' has no setting 'reach'; did you mean 'reach_m'?"]),
        (
            {"x": 1},
            ["module 'Arm' needs the setting 'joints'", "module 'Arm' has no setting 'x' (valid: reach_m, joints)"],
        ),
    ],
)  # fmt: skip
def test_wrong_settings_of_a_harness_are_what_a_run_says_of_them(config: Any, lines: list[str]) -> None:
    with pytest.raises(UserError) as error:
        ModuleHarness(Arm, config)
    assert str(error.value).splitlines() == lines


@pytest.mark.virtual_time
async def test_wrong_arguments_of_a_call_are_named() -> None:
    async with ModuleHarness(Arm, {"joints": 2}) as harness:
        with pytest.raises(SkillError) as error:
            await (await harness.call("bend", joint="both")).result()
        assert str(error.value) == (
            "skill 'bend' cannot take these arguments: joint: it must be a whole number (given: 'both')"
        )


@pytest.mark.virtual_time
@pytest.mark.parametrize(("given", "shown"), [("1", "'1'"), (True, "true"), ("true", "'true'")])
async def test_what_no_schema_lets_in_is_refused_as_a_bridge_refuses_it(given: object, shown: str) -> None:
    async with ModuleHarness(Arm, {"joints": 2}) as harness:
        closed = await (await harness.call("bend", joint=given)).closed()
        assert (closed.outcome, closed.text) == (
            Outcome.REJECTED,
            f"skill 'bend' cannot take these arguments: joint: it must be a whole number (given: {shown})",
        )


@pytest.mark.virtual_time
async def test_an_argument_that_there_is_not_is_told_which_there_are() -> None:
    async with ModuleHarness(Arm, {"joints": 2}) as harness:
        closed = await (await harness.call("bend", joint=1, jiont=1)).closed()
        assert closed.text == (
            "skill 'bend' cannot take these arguments: jiont: there is nothing of this name; did you mean 'joint'?"
            " (valid: joint) (given: 1)"
        )


class Grip(BaseModel):
    model_config = ConfigDict(extra="forbid")
    force: float


class Hand(Module):
    """It grips."""

    @skill
    async def grip(self, grips: list[Grip]) -> None:
        """Grip."""


@pytest.mark.virtual_time
async def test_a_part_of_an_argument_that_there_is_not_is_told_which_there_are() -> None:
    async with ModuleHarness(Hand) as harness:
        closed = await (await harness.call("grip", grips=[{"force": 1, "frce": 2}])).closed()
        assert closed.text.endswith(
            "grips.0.frce: there is nothing of this name; did you mean 'force'? (valid: force) (given: 2)"
        )


@pytest.mark.virtual_time
async def test_a_skill_that_no_module_has_is_refused_at_once() -> None:
    async with ModuleHarness(Arm, {"joints": 2}, context=RunContext(namespace="left/")) as harness:
        with pytest.raises(UnknownSkillError, match=r"'left_bnd'; did you mean 'left_bend'\? \(offered: left_bend"):
            await harness.call("left_bnd")


@pytest.mark.virtual_time
async def test_a_wait_in_vain_says_for_what_and_how_long() -> None:
    async with ModuleHarness(Arm, {"joints": 2}) as harness:
        call = await harness.call("bend", joint=1)
        with pytest.raises(TimeoutError) as error:
            await call.wait_for(lambda event: event.text == "bent", 2)
        assert str(error.value) == (
            "the call of 'bend' had no event that was waited for within 2 s of its time (timeout_s=2 sets that; "
            "events so far: open 'bend(joint=1)'; close '1')"
        )


@pytest.mark.virtual_time
async def test_a_skill_that_uses_others_is_told_that_a_harness_has_no_bridge() -> None:
    async with ModuleHarness(Arm, {"joints": 2}) as harness:
        call = await harness.call("reach")
        with pytest.raises(SkillError, match=r"'open_door' within 5 s.*ModuleHarness has none; blueprint_run has"):
            await call.result()


class Voice(Module):
    """Says something."""

    words: Out[String]

    @skill
    async def speak(self) -> None:
        """Say a word."""
        self.words.publish(String(data="hello"))


class Echo(Module):
    """Has an output of the same name and type."""

    words: Out[String]
    shared_outputs = frozenset({"words"})


@pytest.mark.virtual_time
async def test_what_nothing_could_ever_be_is_no_empty_list() -> None:
    async with ModuleHarness(Drive) as harness:
        with pytest.raises(UserError, match=r"^'odom' is an input, .* \(outputs: cmd_vel\)$"):
            harness.sent("odom")
        call = await harness.call("stop")
        with pytest.raises(UserError, match="no event has the type 'updates'; did you mean 'update'"):
            call.texts("updates")
        assert (await call.wait_for(event("close", outcome="completed"))).call_id == call.id


@pytest.mark.virtual_time
async def test_what_is_sent_on_an_output_of_two_modules_is_listed_once() -> None:
    async with ModuleHarness(Voice) as harness:
        await harness.add(Echo(name="echo"))
        await (await harness.call("speak")).result()
        assert harness.sent("words") == [String(data="hello")]


@pytest.mark.parametrize("piece", [None, 1, 8])
def test_a_models_call_without_arguments_is_a_call(piece: int | None) -> None:
    reply = Reply.calls(("move", ""), ("turn", {"angle_deg": 5}), piece=piece)
    calls = [call for chunk in reply.chunks for call in _calls_of(chunk)]
    arguments = [
        "".join(call["function"].get("arguments", "") for call in calls if call["index"] == i) for i in (0, 1)
    ]
    assert arguments == ["", '{"angle_deg": 5}']


def _calls_of(chunk: Any) -> list[dict[str, Any]]:
    return [call for choice in chunk.get("choices", ()) for call in choice["delta"].get("tool_calls", ())]


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        ({"loss": 20}, "loss=20: it must be a probability, from 0 to 1"),
        ({"duplication": "much"}, "duplication='much': it must be a probability, from 0 to 1"),
        ({"loss": float("nan")}, "loss=nan: it must be"),
        ({"loss": True}, "loss=True: it must be"),
        ({"delay_s": (0.2, 0.1)}, "delay_s=(0.2, 0.1): it must be the shortest and the longest delay, in seconds"),
        ({"delay_s": (0.1,)}, "delay_s=(0.1,): it must be"),
        ({"delay_s": 0.1}, "delay_s=0.1: it must be the shortest and the longest delay, in seconds, as in delay_s=("),
    ],
)
def test_faults_that_can_not_be_are_named(faults: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError) as error:
        Faults(**faults)
    assert text in str(error.value)


def test_faults_of_any_kind_of_numbers_can_be() -> None:
    assert not Faults(loss=Fraction(1, 2), delay_s=[0.0, 0.1]).perfect  # type: ignore[arg-type]


@pytest.mark.virtual_time
async def test_a_bus_with_faults_has_the_subscriptions_that_are_open() -> None:
    inner = create_bus("memq://")
    await inner.open()
    bus = FaultBus(inner, Faults(), seed=1)
    await bus.open()
    for _ in range(100):
        bus.subscribe("/a", lambda channel, data: None).close()
    kept = bus.subscribe_all(lambda channel, data: None)
    of_another = inner.subscribe("/a", lambda channel, data: None)
    assert bus.subscriptions() == [kept]
    assert len(bus._subscriptions) == 1, "the others are kept nowhere"
    await bus.close()
    assert inner.subscriptions() == [of_another]
    await inner.close()


@pytest.mark.virtual_time
async def test_a_harness_outside_of_its_block_names_the_block() -> None:
    usage = r"use `async with ModuleHarness\(Arm, …\) as harness:`"
    harness = ModuleHarness(Arm, {"joints": 2})
    with pytest.raises(UserError, match=f"call\\('bend'\\): the block .* has not begun; {usage}"):
        await harness.call("bend", joint=1)
    with pytest.raises(UserError, match=usage):
        harness.feed("joints", String())
    with pytest.raises(UserError, match=usage):
        harness.sent("joints")
    with pytest.raises(UserError, match=usage):
        await harness
    async with harness:
        await harness.call("bend", joint=1)
    with pytest.raises(UserError, match=f"call\\('bend'\\): the block .* is over; {usage}"):
        await harness.call("bend", joint=1)


class Leaky(Module):
    """A module with a task that fails."""

    config: ModuleConfig
    odom: In[Odometry]

    async def run(self) -> None:
        """Fail at the first odometry, or at the end."""
        try:
            await self.odom.next()
        finally:
            raise ValueError("a leak")


async def _leak(then: Callable[[ModuleHarness], object], *others: Module) -> None:
    async with ModuleHarness(Leaky) as harness:
        for other in others:
            await harness.add(other)
        assert harness.failed() is None
        harness.feed("odom", Odometry())
        await asyncio.sleep(0.1)
        then(harness)


@pytest.mark.virtual_time
async def test_a_module_that_fails_is_the_failure_of_a_test_that_does_not_ask(
    settled_log: pytest.LogCaptureFixture,
) -> None:
    await _leak(lambda harness: [harness.failed(), harness.failed()])
    with pytest.raises(ModuleFailedError, match="module 'Leaky' failed: ValueError: a leak") as error:
        await _leak(lambda harness: None)
    assert error.value.__notes__ == ["a test that expects it awaits `harness.failure()` in the block"]
    assert settled_log.messages == []
    with pytest.raises(ZeroDivisionError):
        await _leak(lambda harness: 1 // 0)
    assert settled_log.messages == ["a task of module Leaky failed"], "what may be why"


@pytest.mark.virtual_time
async def test_a_failure_is_waited_for() -> None:
    async with ModuleHarness(Leaky) as harness:
        with pytest.raises(TimeoutError, match=r"^no task of a module failed within 2 s of its time \(timeout_s=2 "):
            await harness.failure(timeout_s=2)
        asyncio.get_running_loop().call_later(1, harness.feed, "odom", Odometry())
        assert str(await harness.failure()) == "a leak"
        assert await harness.failure() is harness.failed()


@pytest.mark.virtual_time
async def test_each_failure_counts(settled_log: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ModuleFailedError, match="module 'second' failed"):
        await _leak(lambda harness: harness.failed(), Leaky(name="second"))
    with pytest.raises(ModuleFailedError, match="module 'Leaky' failed"):
        await _leak(lambda harness: None, Leaky(name="second"))
    assert settled_log.messages == ["a task of module second failed"]


class Last(Module):
    """A module that is the end of another one."""

    config: ModuleConfig
    odom: Out[Odometry]

    async def stop(self) -> None:
        """Send what the other one fails at."""
        self.odom.publish(Odometry())
        await asyncio.sleep(0.1)


@pytest.mark.virtual_time
@pytest.mark.parametrize("others", [0, 1])
async def test_what_fails_while_modules_stop_is_logged_at_once(
    others: int, settled_log: pytest.LogCaptureFixture
) -> None:
    async with ModuleHarness(Leaky) as harness:
        for _ in range(others):
            await harness.add(Last())
        await asyncio.sleep(0.1)
    gc.collect()
    assert settled_log.messages == ["a task of module Leaky failed"]
    assert settled_log.records[0].exc_info is not None
    assert str(settled_log.records[0].exc_info[1]) == "a leak"


class Cook(Leaky):
    """A module that fails with calls under way."""

    @skill
    async def stir(self, call: Call) -> str:
        """Stir until told otherwise."""
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "stirred"


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_the_calls_of_a_module_that_fails_have_failed_for_what_it_failed_at(
    settled_log: pytest.LogCaptureFixture,
) -> None:
    async with ModuleHarness(Cook) as harness:
        await harness.add(Arm({"joints": 2}))
        cooking = await harness.call("stir")
        harness.feed("odom", Odometry())
        await asyncio.sleep(0.1)
        assert str(harness.failed()) == "a leak"
    (closed,) = (event for event in cooking.events if event.type == "close")
    assert (closed.outcome, closed.text) == (Outcome.FAILED, "module 'Cook' failed: ValueError: a leak")
    assert settled_log.messages == []


@pytest.mark.virtual_time
async def test_a_task_may_feed_the_harness_until_its_module_has_ended() -> None:
    async with ModuleHarness(Arm, {"joints": 2}) as harness:

        async def echo() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                with pytest.raises(UserError, match="no stream is called 'odom'"):
                    harness.feed("odom", Odometry())

        harness.module.spawn(echo(), name="echo")
        await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            {"type": "updaet"},
            "no event has the type 'updaet'; did you mean 'update'? (valid: open, update, progress, ",
        ),
        ({"type": "close", "outcome": "done"}, "no event has the outcome 'done' (valid: completed, failed, "),
    ],
)
def test_a_pattern_that_no_event_would_fit_is_refused(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as error:
        event(**wanted)
    assert str(error.value).startswith(said)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda harness: harness.add(Arm),
            "a module is an instance of its class, as MODULE(), and not the class Arm",
        ),
        (
            lambda harness: harness.add(Arm({"joints": 2}, name="other"), unwired="odom"),
            "unwired are names of streams, as unwired=('odom',), and not 'odom'",
        ),
    ],
)
async def test_what_is_no_module_and_no_list_of_streams_is_told(wrong: Callable[[Any], Any], said: str) -> None:
    async with ModuleHarness(Arm, {"joints": 2}) as harness:
        with pytest.raises(UserError) as error:
            await wrong(harness)
    assert str(error.value) == said


def test_the_url_of_a_bus_is_no_bus() -> None:
    bus: Any = "memq://"
    with pytest.raises(UserError, match=r"^bus='memq://': it must be a bus that is open"):
        ModuleHarness(Arm, {"joints": 2}, bus=bus)


@pytest.mark.virtual_time
async def test_a_mock_that_no_call_would_run_is_refused() -> None:
    async with ModuleHarness(Arm, {"joints": 2}) as harness:
        with (
            mock.patch.object(harness.module, "bend", mock.AsyncMock(return_value=7)),
            pytest.raises(UserError, match=r"^'bend' of this Arm has been replaced, .* mock_skill\(Arm, 'bend', …\)"),
        ):
            await harness.call("bend", joint=1)
        assert await (await harness.call("bend", joint=1)).result() == 1
