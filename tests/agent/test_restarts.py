"""The agent or its bridge is ended and begun again, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.event_reader import EventReader
from dimos_streams.agent.context.entry import Entry
from dimos_streams.agent.missions.end_state import why_ended
from dimos_streams.agent.missions.message_queue import CallUpdate, MessageQueue
from dimos_streams.agent.module import Agent
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import create_bus
from dimos_streams.errors import SkillError
from dimos_streams.module import Module, RunContext
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.skill import skill
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import SkillGateway
from tests.agent.stage import ToySkills
from tests.helpers import until

_KEYS = itertools.count(1)


class RestartWorld:
    """One memory bus and one set of services; each module has a host of its own that can be ended."""

    def __init__(self) -> None:
        self.bus = create_bus("memq://")
        self.context = RunContext()
        self.hosts: dict[str, ModuleHost] = {}
        self.skills = ToySkills(name="skills", context=self.context)

    async def start(self, module: Module) -> None:
        self.hosts[module.name] = host = ModuleHost(self.bus)
        await host.start(module, {})

    async def end(self, name: str) -> None:
        await self.hosts.pop(name).stop()

    def bridge(self, **config: Any) -> Bridge:
        return Bridge(config, name="bridge", context=self.context)

    def agent(self) -> Agent:
        return Agent(name="agent", context=self.context)

    @property
    def gateway(self) -> SkillGateway:
        found = self.context.services.get(SkillGateway)  # type: ignore[type-abstract]
        assert found is not None
        return found

    async def offers_skills(self) -> None:
        """Wait until the bridge knows of skills."""
        while not await self.gateway.skills():  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    async def call(self, skill: str, **arguments: Any) -> str:
        """A call in the agent's name, once its skill is known."""
        while not any(offered.name == skill for offered in await self.gateway.skills()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return await self.gateway.call(skill, arguments, caller="agent", idempotency_key=f"agent/{next(_KEYS)}")


@contextlib.asynccontextmanager
async def restart_world() -> AsyncIterator[RestartWorld]:
    w = RestartWorld()
    await w.bus.open()
    await w.start(w.skills)
    yield w
    for name in reversed(list(w.hosts)):
        await w.end(name)
    await w.bus.close()


async def entry_with(agent: Agent, words: str) -> Entry:
    async with asyncio.timeout(30):
        while True:
            changed = agent.conversation.changed
            for entry in agent.conversation.entries:
                if words in entry.text:
                    return entry
            await changed.wait()


@pytest.mark.virtual_time
async def test_a_new_agent_takes_over_the_calls_that_are_open() -> None:
    async with restart_world() as w:
        await w.start(w.bridge())
        await w.start(w.agent())
        call_id = await w.call("follow_person", description="x")
        await asyncio.sleep(1)
        await w.end("agent")
        await asyncio.sleep(1)
        agent = w.agent()
        await w.start(agent)
        note = await entry_with(agent, "runs from before")
        assert note.call_id == call_id
        assert [entry.role for entry in agent.conversation.entries] == ["note"]
        w.skills.left.set()
        ending = await entry_with(agent, "x has left")
        assert ending.call_id == call_id
        assert ending.role == "event"


@pytest.mark.virtual_time
async def test_an_agent_that_starts_before_its_bridge() -> None:
    async with restart_world() as w:
        agent = w.agent()
        await w.start(agent)
        await asyncio.sleep(3)
        assert agent.health == "no bridge runs in this process at the moment"
        await w.start(w.bridge())
        await asyncio.sleep(10)
        assert agent.health == "ok"
        await w.call("chatter", count=2)
        await entry_with(agent, "completed]")


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_bridge_that_comes_back_with_its_journal(tmp_path: Path) -> None:
    async with restart_world() as w:
        agent = w.agent()
        await w.start(w.bridge(journal=tmp_path / "journal"))
        await w.start(agent)
        await w.call("chatter", count=100, pause_s=0.1)
        await asyncio.sleep(3)
        await w.end("bridge")
        await asyncio.sleep(3)
        await w.start(w.bridge(journal=tmp_path / "journal"))
        await entry_with(agent, "completed]")
        events = [entry.event for entry in agent.conversation.entries if entry.event is not None]
        assert [event.seq for event in events] == list(range(2, 103))


@pytest.mark.virtual_time
async def test_a_bridge_that_has_lost_its_journal() -> None:
    async with restart_world() as w:
        agent = w.agent()
        await w.start(w.bridge())
        await w.start(agent)
        living = await w.call("look_out_for", descriptions=["cat"], timeout_s=1000)
        ending = await w.call("follow_person", description="x")
        await asyncio.sleep(1)
        await w.end("bridge")
        w.skills.left.set()
        await asyncio.sleep(5)
        await w.start(w.bridge())
        await entry_with(agent, "[gap]")
        await entry_with(agent, "x has left")
        await asyncio.sleep(5)
        w.skills.sight.set_result("cat")
        await asyncio.sleep(5)
        events = [entry.event for entry in agent.conversation.entries if entry.event is not None]
        closes = [event.call_id for event in events if event.type == "close"]
        assert sorted(closes) == sorted([living, ending])
        delivered = [(event.call_id, event.seq) for event in events if event.type != "gap"]
        assert len(delivered) == len(set(delivered))


def gap() -> ToolEvent:
    return ToolEvent(
        utime=1, call_id="", seq=0, type="gap", module="", skill="", caller="agent", text="some are lost"
    )


@pytest.mark.virtual_time
async def test_calls_whose_close_fell_into_a_gap_are_closed() -> None:
    async with restart_world() as w:
        await w.start(w.bridge())
        await w.offers_skills()
        update: list[ToolEvent] = []

        async def deliver(item: CallUpdate) -> None:
            update.append(item.event)

        calls = CallManager(w.gateway, "agent", deliver, key_prefix="test")
        over = await calls.start("move", {"distance_m": 1})
        living = await calls.start("follow_person", {"description": "x"})
        unknown = dataclasses.replace(gap(), call_id="gone", seq=1, type="open", skill="think")
        await calls.incoming.observe(unknown)
        waiting = asyncio.create_task(over.answer(60))
        await asyncio.sleep(1)
        await calls.incoming.observe(gap())
        answer = await waiting
        assert answer is not None
        assert (answer.outcome, answer.data["result"]) == (Outcome.COMPLETED, "moved 1 m")
        assert [(event.type, event.call_id, event.outcome) for event in update] == [
            ("gap", "", None),
            ("close", "gone", Outcome.LOST),
        ]
        assert calls.known.open == (living,)
        # What comes late of a call that was reported to be over is not delivered.
        late = dataclasses.replace(unknown, seq=5, type="close", data={"outcome": "completed"})
        await calls.incoming.observe(late)
        assert len(update) == 2


@pytest.mark.virtual_time
async def test_events_that_overtake_the_answer_to_the_call_itself() -> None:
    """Over HTTP the first events may be here before the id of their call is."""

    class Late:
        """The bridge's gateway, slow to say what it did."""

        def __init__(self, gateway: SkillGateway) -> None:
            self._gateway = gateway

        def __getattr__(self, name: str) -> Any:
            return getattr(self._gateway, name)

        async def call(self, *args: Any, **options: Any) -> str:
            call_id = await self._gateway.call(*args, **options)
            await asyncio.sleep(1)
            return call_id

    async with restart_world() as w:
        await w.start(w.bridge())
        await w.offers_skills()
        queue = MessageQueue()
        gateway = cast("SkillGateway", Late(w.gateway))
        calls = CallManager(gateway, "agent", queue.put, key_prefix="test")
        reading = asyncio.create_task(EventReader(gateway, "agent", calls.incoming, offset=0).run())
        call = await calls.start("chatter", {"count": 3})
        answer = await call.answer(5)
        assert answer is not None
        assert (answer.seq, answer.type) == (2, "update")
        await until(lambda: len(queue) == 3)
        assert [item.event.seq for item in queue.take_nowait() if isinstance(item, CallUpdate)] == [3, 4, 5]
        reading.cancel()
        await asyncio.wait([reading])


@pytest.mark.virtual_time
async def test_an_answer_that_is_in_no_journal_holds_no_offset_back() -> None:
    """A call's close is made where the broker says that it has closed and its own can't be had."""
    async with restart_world() as w:
        await w.start(w.bridge())
        await w.offers_skills()
        calls = CallManager(w.gateway, "agent", MessageQueue().put, key_prefix="test")
        call = await calls.start("chatter", {"count": 1})
        while (await w.gateway.calls(open_only=True)) != []:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await calls.reconciliation.close_lost(unknown_too=False)
        answer = await call.answer(5)
        assert answer is not None
        assert (answer.type, answer.outcome) == ("close", Outcome.COMPLETED)
        assert calls.incoming.unrecorded_offset() is None


class JammingSkills(Module):
    """A skill that fails when it is to end."""

    drives = False

    @skill
    async def drive(self) -> None:
        """Drive."""
        self.drives = True
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise SkillError("jammed") from None


@pytest.mark.virtual_time
async def test_a_call_whose_close_is_gone_says_for_which_reason_it_was_to_end() -> None:
    async with restart_world() as w:
        await w.start(w.bridge())
        jamming = JammingSkills(name="jamming", context=w.context)
        await w.start(jamming)
        while not any(offered.name == "drive" for offered in await w.gateway.skills()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        calls = CallManager(w.gateway, "agent", MessageQueue().put, key_prefix="test")
        call = await calls.start("drive", {})
        await until(lambda: jamming.drives)
        await w.gateway.cancel(call.call_id, "enough")
        while (await w.gateway.calls(open_only=True)) != []:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await calls.reconciliation.close_lost(unknown_too=False)
        answer = await call.answer(5)
        assert answer is not None
        assert answer.outcome is Outcome.FAILED
        assert why_ended(answer) == "enough"
