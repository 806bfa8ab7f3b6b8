"""A hold that is kept up, and waiting until gates confirm it: what agents and the bridge both rely on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dimos_streams import clock
from dimos_streams.bus import Bus, create_bus
from dimos_streams.common.tasks import end_tasks
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import Hold, ModuleStatus
from dimos_streams.operator.gate_answers import VelocityGateAnswers
from dimos_streams.operator.gate_confirmation import GateConfirmation
from dimos_streams.operator.hold_beat import HoldBeat
from dimos_streams.operator.holding import HOLD_PERIOD_S, MAX_VALID_S, RELEASES, HoldTable
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.channels import STATUS

CHANNELS = ("left", "right", "third")
channels = st.sets(st.sampled_from(CHANNELS))
rounds = st.lists(st.tuples(channels, channels), max_size=12)
"""For each round, the channels that are held, and those on which nothing can be sent."""


class Wire:
    """Hands each message to the gate on its channel, unless that channel is down."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.sent: list[tuple[str, Hold]] = []
        self.gates = {channel: HoldTable() for channel in CHANNELS}

    def publish(self, channel: str, message: Hold) -> None:
        if channel in self.down:
            raise OSError(f"{channel} is down")
        self.sent.append((channel, message))
        self.gates[channel].update(message, 0.0)

    def held(self) -> set[str]:
        return {channel for channel, gate in self.gates.items() if gate.held(0.0)}


@pytest.mark.feature("B3", "K5")
@given(rounds)
@settings(max_examples=60, deadline=None)
def test_whatever_is_held_and_whatever_fails_each_gate_hears_what_is_meant_for_it(
    said: list[tuple[set[str], set[str]]],
) -> None:
    wire, beat = Wire(), HoldBeat("agent", reason="over")
    for held, wire.down in said:
        before, sent = wire.held(), len(wire.sent)
        beat.send(wire.publish, {channel: f"why {channel}" for channel in held})
        assert {(channel, message.reason) for channel, message in wire.sent[sent:] if message.hold} == {
            (channel, f"why {channel}") for channel in held - wire.down
        }
        assert wire.held() - wire.down == held - wire.down
        assert wire.held() & wire.down == before & wire.down
    wire.down, ends = set(), {channel for channel in CHANNELS if channel in wire.held()}
    sent = len(wire.sent)
    beat.send(wire.publish, {})
    while beat.releasing:
        beat.send(wire.publish, {})
    released = [channel for channel, message in wire.sent[sent:]]
    assert all(released.count(channel) == RELEASES for channel in ends)
    assert not wire.held()
    messages = [message for _, message in wire.sent]
    assert all(one.seq < other.seq for one, other in itertools.pairwise(messages))
    assert {(message.source, message.valid_s) for message in messages} <= {("agent", MAX_VALID_S)}


@pytest.mark.feature("B3", "K5")
@pytest.mark.virtual_time
async def test_the_beat_outlives_an_error_is_early_after_a_change_and_rests_after_the_end() -> None:
    wire, beat = Wire(), HoldBeat("agent")
    times: list[float] = []
    held: set[str] = {"left"}
    began = clock.monotonic()

    def send_round() -> bool:
        times.append(round(clock.monotonic() - began, 3))
        if len(times) == 2:
            raise RuntimeError("a call that can't be understood")
        beat.send(wire.publish, dict.fromkeys(held, ""))
        return bool(held)

    running = asyncio.create_task(beat.run(send_round))
    await asyncio.sleep(0.5)
    assert times == [0.0, HOLD_PERIOD_S, 2 * HOLD_PERIOD_S]
    held.clear()
    beat.changed()
    await asyncio.sleep(10.0)
    assert times[3:] == pytest.approx([0.5 + i * HOLD_PERIOD_S for i in range(RELEASES)])
    held.add("right")
    beat.changed()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert wire.held() == {"right"}
    await end_tasks(running)


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[tuple[Bus, ModuleDirectory]]:
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    try:
        yield bus, directory
    finally:
        directory.stop()
        await bus.close()


def say(bus: Bus, *holds: str) -> None:
    state = json.dumps({"velocity_gate": {"listens": True, "holds": holds, "still": True}})
    bus.publish(STATUS, encode(ModuleStatus(module="gate", instance="1", health="ok", state_json=state)))


@pytest.mark.feature("B3", "K5")
@pytest.mark.virtual_time
async def test_an_answer_counts_when_it_comes_and_nobody_waits_longer_than_until() -> None:
    async with listening() as (bus, directory):
        answers, confirmation = (
            VelocityGateAnswers(directory, "agent", lambda gate: True),
            GateConfirmation(directory),
        )
        say(bus, "agent")
        await asyncio.sleep(0.5)
        began = clock.monotonic()

        async def confirmed() -> tuple[HoldView, float]:
            view = await confirmation.wait(
                lambda: answers.view(began), lambda view: view.confirmed, clock.monotonic() + 1.0
            )
            return view, round(clock.monotonic() - began, 3)

        waiting = [asyncio.create_task(confirmed()) for _ in range(2)]
        await asyncio.sleep(0.3)
        say(bus)
        await asyncio.sleep(0.3)
        say(bus, "agent")
        assert await asyncio.gather(*waiting) == [(HoldView(held=("gate",)), 0.6)] * 2
        await asyncio.sleep(0.1)
        began = clock.monotonic()
        view, took_s = await confirmed()
        assert ([gate.problem for gate in view.not_held], took_s) == (["silent"], 1.0)
