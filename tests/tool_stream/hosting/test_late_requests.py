"""Requests that come late, or behind the end of their calls: nothing of their skills runs."""

from __future__ import annotations

import asyncio
import time

import pytest

from dimos_streams import clock
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCancel
from dimos_streams.module import Module
from dimos_streams.skill import skill
from dimos_streams.testing import ModuleHarness
from dimos_streams.testing.bus_calls import request_call
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.liveness import attention
from dimos_streams.tool_stream.liveness.attention import CATCHES_UP_S, OUTDATED_S
from dimos_streams.tool_stream.protocol.channels import CANCELS
from dimos_streams.tool_stream.protocol.close_data import NOT_RUN


class Shop(Module):
    async def start(self) -> None:
        self.sold: list[str] = []

    @skill
    async def sell(self, what: str) -> str:
        """Sell something."""
        self.sold.append(what)
        return f"sold {what}"


class Counter:
    """A shop under test, of which things are asked over the bus as often as a test says."""

    def __init__(self, harness: ModuleHarness) -> None:
        self.harness = harness
        shop = harness.module
        assert isinstance(shop, Shop)
        self.sold = shop.sold

    def ask(self, what: str) -> None:
        names = {"module": self.harness.module.name, "skill": "sell", "caller": "test"}
        request_call(self.harness.bus, what, arguments={"what": what}, **names)

    def end(self, what: str, reason: str, outcome: str = "") -> None:
        self.harness.bus.publish(CANCELS, encode(SkillCancel(call_id=what, reason=reason, outcome=outcome)))

    def said(self) -> list[tuple[str, str, Outcome | None, str]]:
        return [(each.call_id, each.type, each.outcome, each.text) for each in self.harness.events()]


@pytest.mark.virtual_time
@pytest.mark.parametrize("still_s", [OUTDATED_S - 0.5, OUTDATED_S + 0.5])
async def test_what_is_asked_of_a_process_that_has_stood_still_long_is_to_be_asked_again(
    still_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModuleHarness(Shop) as harness:
        counter = Counter(harness)
        before = clock.steady
        monkeypatch.setattr(clock, "steady", lambda: before() + still_s)
        counter.ask("rose")
        await asyncio.sleep(CATCHES_UP_S - 0.1)
        assert counter.sold == (["rose"] if still_s < OUTDATED_S else [])
        counter.ask("rose")
        await asyncio.sleep(0.2)
        assert len(counter.sold) == len(counter.said()) // 2 == (still_s < OUTDATED_S)
        counter.ask("rose")
        await asyncio.sleep(0.1)
        assert counter.sold == ["rose"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("ends", [False, True])
async def test_of_what_is_asked_of_a_process_that_has_stood_still_shortly_nothing_runs_before_its_end_may_be_heard(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModuleHarness(Shop) as harness:
        counter = Counter(harness)
        before = clock.steady
        monkeypatch.setattr(clock, "steady", lambda: before() + 0.8)
        counter.ask("rose")
        await asyncio.sleep(0.1)
        assert (counter.sold, [type for _, type, *_ in counter.said()]) == ([], ["open"])
        if ends:
            counter.end("rose", "enough")
        await asyncio.sleep(0.2)
        assert counter.sold == ([] if ends else ["rose"])
        assert counter.said()[-1][2] is (Outcome.CANCELLED if ends else Outcome.COMPLETED)


@pytest.mark.virtual_time
async def test_a_call_whose_end_was_heard_before_its_request_is_closed_and_nothing_of_it_runs() -> None:
    async with ModuleHarness(Shop) as harness:
        counter = Counter(harness)
        counter.end("rose", "enough")
        await asyncio.sleep(0.1)
        counter.ask("rose")
        await asyncio.sleep(0.1)
        assert counter.said() == [
            ("rose", "open", None, 'sell(what="rose")'),
            ("rose", "close", Outcome.CANCELLED, "enough"),
        ]
        assert counter.sold == []
        counter.ask("lily")
        await asyncio.sleep(0.1)
        closes = {each.call_id: each.data for each in harness.events() if each.type == "close"}
        assert {what: data.get(NOT_RUN) for what, data in closes.items()} == {"rose": True, "lily": None}


@pytest.mark.virtual_time
async def test_of_a_call_that_is_closed_already_nothing_begins() -> None:
    async with ModuleHarness(Shop) as harness:
        counter = Counter(harness)
        counter.end("rose", "the call is closed already", Outcome.LOST)
        await asyncio.sleep(0.1)
        counter.ask("rose")
        counter.ask("lily")
        await asyncio.sleep(0.1)
        assert counter.sold == ["lily"]
        assert {call_id for call_id, *_ in counter.said()} == {"lily"}


@pytest.mark.slow
def test_what_has_waited_for_a_blocked_loop_does_not_begin_and_what_is_asked_until_it_begins_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In real time: in virtual time nothing blocks."""
    monkeypatch.setattr(attention, "OUTDATED_S", 0.5)

    async def main() -> None:
        async with ModuleHarness(Shop) as harness:
            counter = Counter(harness)
            counter.ask("rose")
            time.sleep(0.8)  # noqa: ASYNC251 - that is what is looked at
            call = await harness.call("sell", what="lily")
            assert await call.result() == "sold lily"
            assert counter.sold == ["lily"]

    asyncio.run(main())
