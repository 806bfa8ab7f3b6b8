"""Skills in their real host, over a memory bus in virtual time."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from dimos_streams.common.secrets import know
from dimos_streams.errors import SkillError, StreamClosedError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.streams import In, Out
from dimos_streams.testing import ModuleHarness
from dimos_streams.testing.bus_calls import request_call
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.hosting import host, host_admission
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS
from dimos_streams.tool_stream.threads import ToolStream
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from tests.tool_stream.hosting.test_results import Carrier


class CounterConfig(ModuleConfig):
    step_s: float = 0.1


class Counter(Module):
    config: CounterConfig
    commands: In[String] = In(required=False)
    cmd_vel: Out[Twist]

    @skill
    async def count(self, call: Call, name: str, to: int = 3) -> str:
        """Count up.

        Args:
            name: What to call the count.
            to: Where it ends.
        """
        try:
            for number in range(1, to + 1):
                await asyncio.sleep(self.config.step_s)
                await call.update(f"{name} {number}", number=number)
            return f"{name} counted"
        finally:
            self.cmd_vel.publish(Twist(linear=Vector3(x=0.0)))

    @skill
    async def answer(self) -> dict[str, int]:
        """Answer at once."""
        return {"answer": 42}

    @skill
    async def fail(self, how: str) -> None:
        """Fail."""
        if how == "silently":
            raise SkillError
        raise SkillError("the shelf is empty") if how == "skill" else ZeroDivisionError("secret")

    @skill(time_limit_s=5)
    async def hang(self) -> None:
        """Hang."""
        await asyncio.Event().wait()

    @skill
    def from_threads(self, call: Call, threads: int) -> int:
        """Send from several threads."""
        stream = ToolStream(call)
        with pytest.raises(StreamClosedError, match="is not started"):
            stream.send("too early")
        stream.start()
        stream.start()
        workers = [threading.Thread(target=self._send, args=(stream, n)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        stream.stop()
        stream.stop()
        with pytest.raises(StreamClosedError, match="is stopped"):
            stream.send("too late")
        return threads

    @staticmethod
    def _send(stream: ToolStream, worker: int) -> None:
        for number in range(50):
            stream.send(f"{worker}/{number}")


class Blocking(Module):
    """Blocking work, which runs inline in virtual time."""

    @skill
    async def measure(self, call: Call, count: int, fails: bool = False) -> str:
        """Measure."""
        with ToolStream(call) as stream:
            return await self.run_blocking(self._measure, stream, count, fails)

    @staticmethod
    def _measure(stream: ToolStream, count: int, fails: bool) -> str:
        for number in range(count):
            stream.send(f"point {number}")
        if fails:
            raise SkillError("it is broken")
        return "measured"


@pytest.mark.virtual_time
@pytest.mark.parametrize("fails", [False, True])
async def test_what_blocking_work_sends_in_virtual_time_comes_before_the_close(fails: bool) -> None:
    async with ModuleHarness(Blocking) as harness:
        call = await harness.call("measure", count=1000, fails=fails)
        close = await call.closed()
        assert close.text == ("it is broken" if fails else "measured")
        assert call.texts("update") == [f"point {number}" for number in range(1000)]


@pytest.mark.virtual_time
@pytest.mark.feature("A1")
async def test_updates_of_two_calls_never_mix() -> None:
    async with ModuleHarness(Counter) as harness:
        first = await harness.call("count", name="first", to=5)
        second = await harness.call("count", name="second", to=4)
        assert await first.answer() == "first 1"
        assert await first.result() == "first counted"
        assert await second.result() == "second counted"
        for call, name, count in ((first, "first", 5), (second, "second", 4)):
            assert [event.seq for event in call.events] == list(range(1, count + 3))
            assert [event.type for event in call.events] == ["open", *["update"] * count, "close"]
            assert call.texts("update") == [f"{name} {n}" for n in range(1, count + 1)]


SECRET = "sk-p1ant3d/key+7"


class Telling(Module):
    """Skills that say what they should not, or can't."""

    @skill
    async def tell(self, call: Call) -> dict[str, str]:
        """Tell a secret."""
        await call.update(f"the key is {SECRET}", key=SECRET, deep=[{"as": f"Bearer {SECRET}"}])
        call.progress(f"with {SECRET}", number=7)
        return {"key": SECRET}

    @skill
    async def say(self, call: Call, what: str) -> object:
        """Say what can't be sent."""
        if what == "a number":
            await call.update(5)  # type: ignore[arg-type]
        elif what == "a share":
            call.progress(0.5)  # type: ignore[arg-type]
        elif what == "an object":
            await call.update("see", it=object())
        return object()


@pytest.mark.virtual_time
async def test_no_event_has_a_secret_that_its_process_knows() -> None:
    know(SECRET)
    async with ModuleHarness(Telling) as harness:
        sent: list[bytes] = []
        harness.bus.subscribe_all(lambda _, data: sent.append(data))
        call = await harness.call("tell")
        assert await call.answer() == "the key is [redacted]"
        assert await call.result() == {"key": "[redacted]"}
        update = next(event for event in call.events if event.type == "update")
        assert (update.data["key"], update.data["deep"]) == ("[redacted]", [{"as": "Bearer [redacted]"}])
        assert not any(SECRET.encode() in data for data in sent)


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("a number", "the text of an update is 5, which is no str"),
        ("a share", "the text of a progress is 0.5, which is no str"),
        ("an object", "the data of an update: not JSON: "),
        ("a result", "the result: not JSON: "),
    ],
)
async def test_what_can_not_be_sent_is_named(what: str, why: str) -> None:
    async with ModuleHarness(Telling) as harness:
        close = await (await harness.call("say", what=what)).closed()
        assert close.outcome is Outcome.FAILED
        assert why in close.text


@pytest.mark.virtual_time
async def test_without_an_update_the_result_is_the_answer() -> None:
    async with ModuleHarness(Counter) as harness:
        call = await harness.call("answer")
        assert await call.answer() == '{"answer":42}'
        assert await call.result() == {"answer": 42}


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("skill_name", "arguments", "outcome", "text"),
    [
        ("fail", {"how": "skill"}, Outcome.FAILED, "the shelf is empty"),
        ("fail", {"how": "silently"}, Outcome.FAILED, "SkillError without a text"),
        (
            "fail",
            {"how": "bug"},
            Outcome.FAILED,
            "internal error test-1-error (ZeroDivisionError): its traceback is on standard error",
        ),
        ("hang", {}, Outcome.TIMED_OUT, "it ran longer than 5 s"),
        ("count", {"nam": "x"}, Outcome.REJECTED, "name: it is missing; nam: there is nothing of this name"),
    ],
)
async def test_every_end_is_one_close(
    skill_name: str,
    arguments: dict[str, str],
    outcome: Outcome,
    text: str,
) -> None:
    async with ModuleHarness(Counter) as harness:
        call = await harness.call(skill_name, **arguments)
        closed = await call.closed()
        assert closed.outcome is outcome
        assert text in closed.text
        assert "secret" not in closed.text
        assert [event.type for event in call.events].count("close") == 1


@pytest.mark.virtual_time
async def test_a_call_of_a_skill_that_the_module_does_not_have_is_one_close() -> None:
    async with ModuleHarness(Counter) as harness:
        name = harness.module.name
        request_call(harness.bus, "a-1", module=name, skill="cuont", caller="test", arguments={})
        await asyncio.sleep(1)
        (closed,) = [event for event in harness.events() if event.type == "close"]
        assert closed.outcome is Outcome.REJECTED
        assert "did you mean 'count'?" in closed.text


@pytest.mark.virtual_time
async def test_cancelling_runs_finally_and_keeps_the_reason() -> None:
    async with ModuleHarness(Counter) as harness:
        call = await harness.call("count", name="long", to=1000)
        await call.answer()
        call.cancel("enough")
        closed = await call.closed()
        assert (closed.outcome, closed.text) == (Outcome.CANCELLED, "enough")
        assert harness.sent("cmd_vel") == [Twist()]


@pytest.mark.slow
@pytest.mark.feature("A2")
def test_eight_threads_send_without_holes(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with ModuleHarness(Counter) as harness:
            call = await harness.call("from_threads", threads=8)
            assert await call.result() == 8
            assert [event.seq for event in call.events] == list(range(1, 8 * 50 + 3))
            for worker in range(8):
                own = [text for text in call.texts("update") if text.startswith(f"{worker}/")]
                assert own == [f"{worker}/{n}" for n in range(50)]

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert "is started already" in caplog.text
    assert "is stopped already" in caplog.text


@pytest.mark.virtual_time
async def test_a_call_that_comes_twice_runs_once() -> None:
    async with ModuleHarness(Counter) as harness:
        recorded: list[bytes] = []
        harness.bus.subscribe("/skill_calls#dimos_streams.SkillCall", lambda _, data: recorded.append(data))
        call = await harness.call("count", name="once", to=2)
        await asyncio.sleep(0.01)
        sent: list[ToolEvent] = []
        harness.bus.subscribe(EVENTS, lambda channel, data: sent.append(unpack_event(data, channel)))
        for _ in range(3):
            harness.bus.publish("/skill_calls#dimos_streams.SkillCall", recorded[0])
        await asyncio.sleep(0.01)
        assert [(event.type, event.seq) for event in sent] == [("open", 1)] * 3, "who calls again has missed it"
        await call.closed()
        harness.bus.publish("/skill_calls#dimos_streams.SkillCall", recorded[0])
        await asyncio.sleep(2)
        assert [event.type for event in call.events] == ["open", "update", "update", "close"]


def test_schema_comes_from_signature_and_docstring() -> None:
    from dimos_streams.skill import skills_of

    info = skills_of(Counter)["count"].info("robot1/")
    assert info.name == "robot1_count"
    assert info.description == "Count up."
    assert info.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "What to call the count."},
            "to": {"type": "integer", "default": 3, "description": "Where it ends."},
        },
    }


class Kept(Module):
    """Skills that are not for everybody."""

    config: CounterConfig

    @skill(audience="operator")
    async def kept(self) -> str:
        """For operators."""
        return "kept"

    @skill(audience="bridge")
    async def judge(self) -> str:
        """For the bridge."""
        return "judged"


@pytest.mark.virtual_time
async def test_a_module_refuses_what_is_not_for_who_calls_also_without_a_bridge() -> None:
    async with ModuleHarness(Kept, name="kept") as harness:

        async def ended(skill: str, caller: str, parent: str) -> ToolEvent:
            call_id = f"{skill}-{caller}-{parent}"
            message = SkillCall(call_id=call_id, module="kept", skill=skill, caller=caller, parent=parent)
            harness.bus.publish(CALLS, encode(message))
            async with asyncio.timeout(5):
                while True:
                    for event in harness.events():
                        if event.call_id == call_id and event.type == "close":
                            return event
                    await asyncio.sleep(0.01)

        assert (await ended("kept", "operator", "")).text == "kept"
        refused = await ended("kept", "operator", "look-1")
        assert refused.outcome is Outcome.REJECTED
        assert refused.text == "skill 'kept' is for operators: no skill may begin it (here that of call 'look-1')"
        assert (await ended("judge", "bridge", "")).text == "judged"
        refused = await ended("judge", "operator", "")
        assert refused.outcome is Outcome.REJECTED
        assert "is for the bridge alone, and nobody else may call it (here 'operator')" in refused.text
        assert (await ended("judge", "bridge", "look-1")).outcome is Outcome.REJECTED


class Sensor(Module):
    """It claims more than it keeps."""

    @skill(read_only=True)
    async def look(self, call: Call, then: str) -> str:
        """Look, and go on with another skill."""
        return await call.skills.start(then, {})


@pytest.mark.virtual_time
async def test_what_is_read_only_begins_no_other_call() -> None:
    async with ModuleHarness(Sensor) as harness, ModuleHarness(Counter, bus=harness.bus):
        call = await harness.call("look", then="answer")
        with pytest.raises(SkillError, match=r"'look' can't begin 'answer': it is declared read_only"):
            await call.result()


@pytest.mark.parametrize("more", [{"motion": True}, {"resources": {"base"}}, {"reversible": False}, {"undo": "back"}])
def test_a_skill_that_changes_something_is_not_read_only(more: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"read_only with {next(iter(more))}"):
        skill(read_only=True, **more)(lambda self: None)


@pytest.mark.virtual_time
async def test_a_module_runs_so_many_calls_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_admission, "_MAX_OPEN", 2)
    async with ModuleHarness(Carrier, name="carrier") as harness:
        for _ in range(2):
            await harness.call("carry", how="on")
        await asyncio.sleep(0.1)
        closed = await (await harness.call("carry", how="plain")).closed()
        assert (closed.outcome, closed.text) == (Outcome.REJECTED, "module 'carrier' runs 2 calls already")


@pytest.mark.virtual_time
async def test_calls_of_one_skill_leave_room_for_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_admission, "_MAX_OF_ONE", 1)
    async with ModuleHarness(Carrier, name="carrier") as harness:
        await harness.call("carry", how="on")
        await asyncio.sleep(0.1)
        closed = await (await harness.call("carry", how="plain")).closed()
        assert (closed.outcome, closed.text) == (Outcome.REJECTED, "module 'carrier' runs 1 calls of 'carry' already")
        assert await (await harness.call("rest")).result() == "rested"


@pytest.mark.virtual_time
async def test_a_call_for_whose_rejection_there_was_no_room_is_rejected_when_it_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host, "_REJECTIONS", (1.0, 1.0))
    async with ModuleHarness(Carrier, name="carrier") as harness:

        async def ask(call_id: str) -> None:
            harness.bus.publish(CALLS, encode(SkillCall(call_id=call_id, module="carrier", skill="fly", caller="me")))
            await asyncio.sleep(0.01)

        def rejected() -> list[str]:
            return [event.call_id for event in harness.events() if event.outcome is Outcome.REJECTED]

        await ask("one")
        await ask("two")
        assert rejected() == ["one"]
        await asyncio.sleep(1.0)
        await ask("two")
        assert rejected() == ["one", "two"]
