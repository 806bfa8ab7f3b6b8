"""The mission record: the conversation rebuilt from it, and missions that go on after the agent was killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams.agent.context.conversation import Conversation
from dimos_streams.agent.context.shortening import is_final
from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.models.protocol import AssistantMessage, ModelRequest, ToolCallDelta, ToolResultMessage
from dimos_streams.agent.record.agent_events import sub_of
from dimos_streams.agent.record.mission_record import MissionRecord
from dimos_streams.agent.record.read_record import read_lines, read_missions
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.loop.agent_in_memory import AgentInMemory
from tests.agent.loop.fake_bridge import FakeCall, Line, offered
from tests.agent.loop.function_model import Answer, FunctionModel, asks, in_turn, says
from tests.agent.loop.line_world import LineWorld
from tests.helpers import run_virtual, until


@pytest.mark.virtual_time
async def test_what_consoles_show_of_the_conversation_has_the_same_numbers_after_a_restart(tmp_path: Path) -> None:
    """A page that was open all the time puts new lines behind those that it has, by their numbers."""
    world = LineWorld()

    def shown(agent: AgentInMemory) -> list[tuple[int, str]]:
        lines = agent.core.operators.snapshots.take(watched=True).conversation
        return [(line.number, line.text) for line in lines if line.role != "progress"]

    async with world.with_model(FunctionModel(lambda request: says("fine")), tmp_path) as agent:
        for number in range(3):
            await agent.over(await agent.say(f"text {number}"))
            agent.core.conversation.add_entry("progress", f"{number} m", call_id="c")
        before = shown(agent)
        await agent.leave()
    async with world.with_model(FunctionModel(lambda request: says("fine")), tmp_path) as agent:
        assert [line for line in shown(agent) if line in before] == before
        await agent.over(await agent.say("more"))
        after = shown(agent)
    assert after[-1][0] > before[-1][0]
    assert [number for number, _ in after] == sorted({number for number, _ in after})


@pytest.mark.feature("B10")
@pytest.mark.virtual_time
async def test_the_conversation_is_rebuilt_from_the_files(tmp_path: Path) -> None:
    world = LineWorld()
    answers = [
        asks(("move", {"by": 1}), ("follow", {}), ("fail", {})),
        says("I follow"),
        says("here"),
        says("over"),
    ]
    async with world.with_model(FunctionModel(in_turn(*answers)), tmp_path) as agent:
        mission = await agent.say("go")
        await asyncio.sleep(5)
        agent.core.control.pause("to see it")
        agent.core.control.resume()
        other = await agent.over(await agent.say("where are you?"))
        world.released.set()
        await agent.over(mission)
        await agent.core.loop.undo()
        rebuilt = Conversation()
        resumption = read_resumption(tmp_path, "agent")
        assert resumption is not None
        for event in resumption.events:
            rebuilt.apply(event)
        assert rebuilt.entries == agent.core.conversation.entries
        assert resumption.events == agent.core.events.after(0)
        assert (resumption.missions, resumption.calls, resumption.unanswered) == ([], [], [])
        first, second = read_missions(tmp_path)
        assert (first.id, second.id) == (mission.id, other.id)
        for recorded in (first, second):
            assert recorded.events[0].kind == "mission_start"
            assert recorded.done is recorded.events[-1] or recorded.done is not None


@pytest.mark.feature("B10")
@pytest.mark.virtual_time
async def test_a_damaged_tail_loses_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = LineWorld()
    async with world.with_model(FunctionModel(lambda request: says("hello")), tmp_path) as agent:
        mission = await agent.over(await agent.say("hi"))
        path = tmp_path / "agent.m0.jsonl"
        whole = list(read_lines(path))
        path.write_bytes(path.read_bytes()[:-20])
        assert list(read_lines(path)) == whole[:-1]
        assert "is damaged and skipped" in caplog.text
        record = MissionRecord(tmp_path, "agent")
        record.write(whole[-1].event)
        record.close()
        assert [line.event for line in read_lines(path)] == [line.event for line in whole]
        assert mission.over


@pytest.mark.virtual_time
async def test_a_disk_that_refuses_does_not_hinder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = LineWorld()
    async with world.with_model(FunctionModel(lambda request: says("hello")), tmp_path) as agent:
        shutil.rmtree(tmp_path)
        assert (await agent.over(await agent.say("hi"))).text == "hello"
        assert caplog.text.count("can't be written") == 1


@pytest.mark.virtual_time
async def test_the_oldest_missions_go(tmp_path: Path) -> None:
    world = LineWorld()
    model = FunctionModel(lambda request: says("hello"))
    async with world.with_model(model, tmp_path) as agent:
        for _ in range(10):
            await agent.over(await agent.say("hi"))
        await agent.leave()
        other = MissionRecord(tmp_path, "agent", kept=4)
        other.open()
        assert len(read_missions(tmp_path)) == 4


def test_missions_whose_end_could_never_be_written_go_with_the_oldest(tmp_path: Path) -> None:
    kinds = ("agent.m0.ended", "agent.m1.jsonl", "agent.m2.ended", "agent.m3.jsonl", "other.m0.ended")
    for age, name in enumerate(kinds):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    MissionRecord(tmp_path, "agent", kept=2).open()
    assert {path.name for path in tmp_path.iterdir()} == {"agent.m2.ended", "agent.m3.jsonl", "other.m0.ended"}


@pytest.mark.virtual_time
async def test_a_mission_that_is_not_over_stays_however_old_it_is(tmp_path: Path) -> None:
    world = LineWorld()

    def answer(request: ModelRequest) -> Answer:
        return asks(("follow", {})) if request.messages[-1].text == "watch" else says("hello")

    for life in range(3):
        agent = await world.with_model(FunctionModel(answer), tmp_path, missions_kept=2).__aenter__()
        if life == 0:
            watching = await agent.say("watch")
            await until(lambda agent=agent: agent.core.calls.known.open)  # type: ignore[misc]
            for _ in range(3):
                await agent.over(await agent.say("hi"))
            os.utime(tmp_path / f"agent.{watching.id}.jsonl", (1, 1))
        await until(lambda agent=agent: agent.core.calls.known.open)  # type: ignore[misc]
        assert [[each.id for each in call.missions] for call in agent.core.calls.known.open] == [[watching.id]]
        await agent.leave()
    await world.bridge.close()


def test_old_missions_that_can_not_be_deleted_do_not_hinder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "agent.m0.jsonl").symlink_to("gone")
    (tmp_path / "agent.m1.jsonl").mkdir()
    (tmp_path / "agent.m2.jsonl").touch()
    record = MissionRecord(tmp_path, "agent", kept=1)
    record.open()
    assert caplog.text.count("can't be written") == 1
    begun = {"id": "m3", "text": "hi"}
    event = AgentEvent(number=1, utime=1, agent="agent", kind="mission_start", missions=("m3",), data=begun)
    record.write(event)
    record.close()
    assert [line.event for line in read_lines(tmp_path / "agent.m3.jsonl")] == [event]


class Kill:
    """A mission with everything in it, and the death of its agent. The model answers by what it sees."""

    def __init__(self, folder: Path, script: dict[str, list[Answer]], *, on_its_way: bool) -> None:
        """``script`` has what an agent asks for, one answer after the other, by its system prompt. ``on_its_way``: a
        call that it is about to begin begins in spite of its death."""
        self.world = LineWorld()
        self.world.bridge.bodies["chat"] = (offered("chat"), self.chat)
        self.folder = folder
        self.script = script
        self.on_its_way = on_its_way
        self.line = Line(self.world.bridge)

    async def chat(self, call: FakeCall) -> str:
        for _ in range(12):
            call.send("update", "update")
            await asyncio.sleep(0.35)
        return "over"

    def answer(self, request: ModelRequest) -> Answer:
        script = self.script[request.messages[0].text]
        asked = sum(isinstance(m, AssistantMessage) and bool(m.tool_calls) for m in request.messages)
        return script[asked] if asked < len(script) else says("fine")

    def agent(self, folder: Path, line: Line | None) -> AgentInMemory:
        config = {
            "plan": {"motions": None},
            "system_prompt": "agent",
            "agents": {"helper": {"description": "helps", "prompt": "helper", "skills": ["move", "look", "chat"]}},
        }
        return AgentInMemory(
            self.world.bridge, FunctionModel(self.answer, lambda: 0.1), config, record_dir=folder, line=line
        )

    async def die(self, moment: int, last_entry: Callable[[AgentInMemory], object] = lambda agent: None) -> int:
        """Begin the mission, and die at that event or the next that fits; what is then on the disk stays.

        Gives the event's number, 0 if the mission was over before.
        """
        before, after = self.folder / "before", self.folder / "after"
        before.mkdir()
        died_at = 0
        first = self.agent(before, self.line)

        def look(event: AgentEvent) -> None:
            nonlocal died_at
            if not died_at and event.number >= moment and (event.kind == "call_run" or not self.on_its_way):
                died_at = event.number
                last_entry(first)
                shutil.copytree(before, after)
                self.line.cut(self.on_its_way)

        async with contextlib.AsyncExitStack() as stack:
            await first.__aenter__()
            stack.push_async_callback(first.leave)
            first.core.events.listen(look)
            mission = await first.say("go")
            while not died_at and not mission.over:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.1)
        return died_at


ALONE = {
    "agent": [
        asks(("chat", {}), ("move", {"by": 1}), ("look", {}), ("look", {"for_s": 2})),
        asks(("follow", {}), ("move", {"by": 2})),
    ]
}
WITH_A_HELPER = {
    "agent": [asks(("delegate", {"agent": "helper", "task": "see to it"})), asks(("move", {"by": 3}))],
    "helper": [asks(("chat", {}), ("move", {"by": 1}), ("look", {}))],
}


@pytest.mark.feature("B10", "E5")
@pytest.mark.parametrize("on_its_way", [False, True])
@pytest.mark.parametrize("script", [ALONE, WITH_A_HELPER], ids=["alone", "with a helper"])
@pytest.mark.slow
def test_killed_at_any_event_the_mission_goes_on_and_nothing_is_delivered_twice(
    tmp_path: Path, script: dict[str, list[Answer]], on_its_way: bool
) -> None:
    async def killed(moment: int) -> int:
        folder = tmp_path / str(moment)
        folder.mkdir()
        kill = Kill(folder, script, on_its_way=on_its_way)
        asyncio.get_running_loop().call_later(12, kill.world.released.set)
        died_at = await kill.die(moment)
        if died_at:
            async with kill.agent(folder / "after", None) as second:
                async with asyncio.timeout(100):
                    while second.core.loop.missions or second.core.loop.state != "idle":  # noqa: ASYNC110
                        await asyncio.sleep(0.25)
                _check(kill, second)
        return died_at

    async def main() -> None:
        deaths, moment = 0, 1
        try:
            while died_at := await killed(moment):
                deaths, moment = deaths + 1, died_at + 1
        except BaseException as error:
            error.add_note(f"killed at event {moment} or after it")
            raise
        assert deaths >= (5 if on_its_way else 60)

    run_virtual(main())


def _check(kill: Kill, agent: AgentInMemory) -> None:
    (recorded,) = read_missions(kill.folder / "after")
    assert recorded.done is not None
    assert recorded.done.data["reason"] == "completed"
    recorded_events = [event.data["event"] for event in recorded.events if event.kind in ("update", "result")]
    happened = [entry.event for entry in kill.world.bridge.journal if entry.event.type != "open"]
    assert sorted((event["call_id"], event["seq"]) for event in recorded_events if event is not None) == sorted(
        (event.call_id, event.seq) for event in happened
    )
    assert sum(event.kind == "input" and not sub_of(event) for event in recorded.events) == 1
    # The robot did each thing once: nothing is begun again because its beginning was not heard of.
    assert len(set(kill.world.log)) == len(kill.world.log)
    requests = agent.core.model.adapter.requests  # type: ignore[attr-defined]
    assert not any(is_final(request.messages[-1]) for request in requests), "the model was asked about nothing new"
    newest = agent.core.conversation.messages()
    asked = [call.id for m in newest if isinstance(m, AssistantMessage) for call in m.tool_calls]
    assert asked == [m.tool_call_id for m in newest if isinstance(m, ToolResultMessage)]
    assert len(asked) == sum(isinstance(delta, ToolCallDelta) for answer in kill.script["agent"] for delta in answer)


@pytest.mark.feature("B3", "B4")
@pytest.mark.parametrize("mode", [Mode.PAUSED, Mode.STEPPING])
@pytest.mark.virtual_time
async def test_what_was_held_when_the_agent_died_is_held_by_its_successor(tmp_path: Path, mode: Mode) -> None:
    kill = Kill(tmp_path, ALONE, on_its_way=False)
    kill.world.released.set()

    def hold(agent: AgentInMemory) -> None:
        if mode is Mode.PAUSED:
            agent.core.control.pause("there is a child")
            agent.core.control.pause("wet floor")
        else:
            agent.core.control.step()
        agent.core.gate_state.enabled.set("look", False)

    assert await kill.die(21, hold)  # the first move is over
    async with kill.agent(tmp_path / "after", None) as second:
        await asyncio.sleep(60)
        assert second.core.control.mode is mode
        assert second.core.holding is (mode is Mode.PAUSED)
        assert second.core.control.paused_for == ("wet floor; there is a child" if mode is Mode.PAUSED else "")
        assert second.core.gate_state.enabled.disabled == ("look",)
        assert kill.world.log == ["move 1"]
        second.core.control.resume()
        assert second.core.control.paused_for == ""
        async with asyncio.timeout(100):
            while second.core.loop.missions:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.25)
        assert kill.world.log == ["move 1", "follow ended", "move 2"]


@pytest.mark.virtual_time
async def test_an_agent_that_ends_before_the_bridge_answers_leaves_the_offset_of_its_record(tmp_path: Path) -> None:
    world = LineWorld()
    async with world.with_model(FunctionModel(in_turn(asks(("follow", {})), says("I wait"))), tmp_path) as agent:
        await agent.say("go")
        await asyncio.sleep(5)
        agent.core.memory.forget()
        await agent.leave()
        before = read_resumption(tmp_path, "agent")
        assert before is not None
        assert before.offset > 0
        successor = world.with_model(FunctionModel(in_turn()), tmp_path).core
        successor.record.open()
        successor.memory.forget()
        successor.record.close()
        after = read_resumption(tmp_path, "agent")
        assert after is not None
        assert len(after.events) == len(before.events) + 1
        assert after.offset == before.offset


@pytest.mark.virtual_time
async def test_lines_are_json_with_an_offset(tmp_path: Path) -> None:
    world = LineWorld()
    async with world.with_model(FunctionModel(lambda request: says("hello")), tmp_path) as agent:
        await agent.over(await agent.say("hi"))
    line = json.loads((tmp_path / "agent.m0.jsonl").read_text().splitlines()[0])
    assert line["offset"] == 0
    assert line["event"]["kind"] == "mission_start"
