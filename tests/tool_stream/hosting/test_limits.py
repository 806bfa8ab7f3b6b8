"""How much a host takes, keeps and sends for the calls of its modules, and what it says of what is too much."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall, SkillCancel
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.hosting import begun_calls, host
from dimos_streams.tool_stream.liveness.heartbeat import HEARTBEAT_S
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, STATUS
from dimos_streams.tool_stream.sending.receivers import RECEIVER_GONE_S


class Scribe(Module):
    """It says what it is told to."""

    @skill
    async def say(self, text: str = "", length: int = 0, waits: bool = False) -> str:
        """Say."""
        if waits:
            await asyncio.Event().wait()
        return text or "x" * length

    @skill
    async def late(self, call: Call) -> None:
        """It has a bound of its own."""
        async with asyncio.timeout(0.1):
            await asyncio.Event().wait()


async def ended(harness: ModuleHarness, call_id: str) -> list[ToolEvent]:
    """All events of a call that was asked for by hand."""
    async with asyncio.timeout(10):
        while True:
            events = [event for event in harness.events() if event.call_id == call_id]
            if events and events[-1].type == "close":
                return events
            await asyncio.sleep(0.01)


def ask(harness: ModuleHarness, call_id: str, arguments_json: str, on_loss: str = "") -> None:
    message = SkillCall(
        call_id=call_id, module="scribe", skill="say", caller="me", arguments_json=arguments_json, on_loss=on_loss
    )
    harness.bus.publish(CALLS, encode(message))


@pytest.mark.virtual_time
@pytest.mark.parametrize(("length", "fits"), [(45_900, True), (46_000, False)])
async def test_a_result_and_its_text_fit_together_or_are_refused(length: int, fits: bool) -> None:
    async with ModuleHarness(Scribe) as harness:
        closed = await (await harness.call("say", length=length)).closed()
        if fits:
            assert (closed.outcome, closed.data["result"]) == (Outcome.COMPLETED, "x" * length)
            assert closed.text == "x" * 2000
        else:
            problem = "the result and its text have 48013 bytes, 48000 are possible; give a reference instead"
            assert (closed.outcome, closed.text) == (Outcome.FAILED, problem)


@pytest.mark.virtual_time
async def test_calls_that_could_not_begin_push_no_other_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begun_calls, "REMEMBERED_REJECTED", 3)
    monkeypatch.setattr(begun_calls, "REMEMBERED", 1)
    async with ModuleHarness(Scribe, name="scribe") as harness:
        ask(harness, "real", "{}")
        await ended(harness, "real")
        for number in range(20):
            ask(harness, f"forged{number}", '{"nonsense": 1}')
            assert (await ended(harness, f"forged{number}"))[-1].outcome is Outcome.REJECTED
        began = len(harness.events())
        ask(harness, "real", "{}")
        await asyncio.sleep(0.5)
        assert all(event.call_id == "real" for event in harness.events()[began:]), "it is known, and begins nothing"
        assert [event.seq for event in harness.events() if event.call_id == "real"] == [1, 2]


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_all_calls_of_a_module_are_in_heartbeats_of_one_datagram_each() -> None:
    heard, sizes = list[ModuleStatus](), list[int]()

    def on_status(channel: str, data: bytes) -> None:
        heard.append(decode(ModuleStatus, data))
        sizes.append(len(data))

    async with ModuleHarness(Scribe, name="scribe") as harness:
        harness.bus.subscribe(STATUS, on_status)
        harness.module.health = "é" * 50_000
        ids = [f"{number:0200}" for number in range(300)]
        for call_id in ids:
            ask(harness, call_id, '{"waits": true}')
        await asyncio.sleep(2 * HEARTBEAT_S)
        named = {call_id for status in heard for call_id in status.call_ids}
        assert named >= set(ids)
        heard.clear()
        await asyncio.sleep(0.99 * HEARTBEAT_S)
        own = [status for status in heard if status.module == "scribe"]
        assert [seq for status in own for seq in status.last_seqs] == [1] * len(ids), "each call is in one of them"
        assert all(status.health == "é" * 199 + "…" for status in own)
        assert max(sizes) <= ONE_PIECE


@pytest.mark.virtual_time
@pytest.mark.parametrize("more", [0, 1])
async def test_arguments_that_no_event_holds_are_refused_and_left_out(more: int) -> None:
    text = "x" * (MAX_ARGUMENTS - len('{"text":""}') + more)
    async with ModuleHarness(Scribe, name="scribe") as harness:
        ask(harness, "call", f'{{"text":"{text}"}}')
        opened, close = await ended(harness, "call")
        if more:
            assert (opened.text, opened.data["arguments"], close.outcome) == ("say()", {}, Outcome.REJECTED)
            assert "arguments: they have 40001 bytes, 40000 are possible" in close.text
        else:
            assert opened.text == f'say(text="{"x" * 116}...)'
            assert opened.data["arguments"] == {"text": text}


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("given", "on_loss", "why"),
    [
        ("{", "", "bad JSON: "),
        ("[1]", "", "JSON of type list, not an object (arguments_json is '[1]'; valid: a JSON object"),
        ("", "drift", "on_loss is 'drift' (valid: stop, continue, or nothing)"),
    ],
)
async def test_a_call_that_cannot_be_read_is_rejected_and_told_why(given: str, on_loss: str, why: str) -> None:
    async with ModuleHarness(Scribe, name="scribe") as harness:
        ask(harness, "call", given, on_loss)
        opened, close = await ended(harness, "call")
        assert (opened.text, opened.data["arguments"], close.outcome) == ("say()", {}, Outcome.REJECTED)
        assert why in close.text
        ask(harness, "call", given, on_loss)
        await asyncio.sleep(0.5)
        assert [event.type for event in harness.events() if event.call_id == "call"] == ["open", "close"]


@pytest.mark.virtual_time
async def test_calls_that_cannot_be_read_are_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_REJECTIONS", (0.001, 3.0))
    async with ModuleHarness(Scribe, name="scribe") as harness:
        for number in range(10):
            ask(harness, f"call-{number}", "{")
        await ended(harness, "call-2")
        await asyncio.sleep(0.5)
        assert len({event.call_id for event in harness.events()}) == 3


@pytest.mark.virtual_time
@pytest.mark.parametrize(("length", "shown"), [(118, "x" * 118 + '"'), (119, "x" * 116 + "...")])
async def test_a_long_argument_is_shown_by_its_beginning(length: int, shown: str) -> None:
    async with ModuleHarness(Scribe) as harness:
        call = await harness.call("say", text="x" * length)
        assert call.events[0].text == f'say(text="{shown})'


@pytest.mark.virtual_time
async def test_a_cancel_has_a_reason_of_some_length() -> None:
    async with ModuleHarness(Scribe, name="scribe") as harness:
        for reason, reported in (("", "no reason was given"), ("y" * 3000, "y" * 2000)):
            call = await harness.call("say", waits=True)
            call.cancel(reason)
            call.cancel("another one")
            assert (await call.closed()).text == reported
        ask(harness, "at-once", '{"waits":true}')
        harness.bus.publish(CANCELS, encode(SkillCancel(call_id="at-once", reason="not at all")))
        assert (await ended(harness, "at-once"))[-1].text == "not at all"


@pytest.mark.virtual_time
@pytest.mark.feature("F6")
async def test_only_its_skill_says_that_a_call_has_completed() -> None:
    async with ModuleHarness(Scribe) as harness:
        for outcome in Outcome:
            call = await harness.call("say", waits=True)
            harness.bus.publish(CANCELS, encode(SkillCancel(call_id=call.id, outcome=outcome, reason="forged")))
            closed = await call.closed()
            assert closed.outcome is (Outcome.CANCELLED if outcome is Outcome.COMPLETED else outcome)


@pytest.mark.virtual_time
async def test_an_end_of_which_nobody_has_heard_is_none() -> None:
    async with ModuleHarness(Scribe) as harness:
        call = await harness.call("say", waits=True)
        harness.bus.publish(CANCELS, encode(SkillCancel(call_id=call.id, outcome="vanished", reason="forged")))
        await asyncio.sleep(0.1)
        harness.bus.publish(
            CANCELS, encode(SkillCancel(call_id=call.id, outcome="timed_out", reason="by the bridge"))
        )
        closed = await call.closed()
        assert (closed.outcome, closed.text) == (Outcome.TIMED_OUT, "by the bridge")


@pytest.mark.virtual_time
async def test_a_time_limit_of_a_skills_own_is_its_own_mistake() -> None:
    async with ModuleHarness(Scribe) as harness:
        closed = await (await harness.call("late")).closed()
        assert closed.outcome is Outcome.FAILED
        assert "internal error" in closed.text
        assert closed.data["error"] == "internal"


@pytest.mark.virtual_time
async def test_how_calls_ended_is_remembered_of_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begun_calls, "REMEMBERED", 2)
    async with ModuleHarness(Scribe, name="scribe") as harness:
        for call_id in ("one", "two", "three"):
            ask(harness, call_id, "{}")
            await ended(harness, call_id)
        skills = harness._host._skills
        assert [skills.outcome(call_id) for call_id in ("one", "two", "three", "never")] == [
            None, Outcome.COMPLETED, Outcome.COMPLETED, None,
        ]  # fmt: skip
        assert "one" not in skills._begun, "nothing is left of what has ended long ago"


@pytest.mark.virtual_time
@pytest.mark.feature("F6")
async def test_a_call_that_runs_is_known_however_many_end_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begun_calls, "REMEMBERED", 2)
    async with ModuleHarness(Scribe, name="scribe") as harness:
        ask(harness, "long", '{"waits": true}')
        for number in range(4):
            ask(harness, f"short{number}", "{}")
            await ended(harness, f"short{number}")
        ask(harness, "long", '{"waits": true}')
        await asyncio.sleep(0.5)
        assert harness.bus.statistics().errors == 0, "it does not begin again"
        harness.bus.publish(CANCELS, encode(SkillCancel(call_id="long")))
        assert [event.seq for event in await ended(harness, "long")] == [1, 2]
        assert harness._host._skills.outcome("long") is Outcome.CANCELLED


@pytest.mark.virtual_time
async def test_heartbeats_come_again_where_a_call_is_not_acknowledged_as_long_as_somebody_receives() -> None:
    async with ModuleHarness(Scribe, name="scribe") as harness:
        beats: list[float] = []

        async def in_a_second() -> int:
            beats.clear()
            await asyncio.sleep(1.0)
            return len(beats)

        harness.bus.subscribe(STATUS, lambda channel, data: beats.append(clock.monotonic()))
        await asyncio.sleep(0.5)
        assert await in_a_second() == 4, "nothing is to be acknowledged"
        await harness.call("say", waits=True)
        await asyncio.sleep(0.5)
        assert await in_a_second() == 4
        for subscription in harness._subscriptions:
            subscription.close()
        await asyncio.sleep(0.5)
        assert await in_a_second() == 12
        await asyncio.sleep(RECEIVER_GONE_S)
        assert await in_a_second() == 4, "whoever received is gone"


@pytest.mark.virtual_time
async def test_a_host_that_has_stopped_leaves_nothing_on_the_bus_and_its_modules_say_nothing() -> None:
    bus = create_bus("memq://")
    await bus.open()
    async with ModuleHarness(Scribe, name="scribe", bus=bus) as harness:
        await harness.call("say", waits=True)
        await asyncio.sleep(0.5)
        module = harness.module
    assert not list(bus.subscriptions())
    published = bus.statistics().published
    module.report_state({"gate": "open"})
    await asyncio.sleep(2.0)
    assert bus.statistics().published == published
    await bus.close()
