"""The agent as a process of its own: bridge, agent and skills over LCM and HTTP, the model behind an HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.record.read_record import read_missions
from dimos_streams.agent.record.record_files import FOLDER
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.testing import ModelServer, Reply
from dimos_streams.testing.model_server import RecordedRequest
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
from tests.agent.models.blocks import parse_blocks
from tests.helpers import until
from tests.live.mission import Mission, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]


@dataclass
class LiveWorld:
    """A run, and the model that drives its agent: ``scripts`` has its answers by the operator's input."""

    scripts: dict[str, list[Reply]] = field(default_factory=dict)
    requests: list[RecordedRequest] = field(default_factory=list)
    failures: list[Reply] = field(default_factory=list)
    """The replies that the server gives before any other."""
    mission: Mission = field(init=False)

    def reply(self, request: RecordedRequest) -> Reply:
        """The next answer to the newest input; it needs no memory, so that the agent may lose its."""
        self.requests.append(request)
        if self.failures:
            return self.failures.pop(0)
        input, since = self._newest_input(request)
        done = sum(message["role"] == "assistant" for message in since)
        script = self.scripts[input]
        return script[done] if done < len(script) else Reply.say("Done.")

    def _newest_input(self, request: RecordedRequest) -> tuple[str, list[dict[str, Any]]]:
        """The operator's, and the messages since then."""
        messages = request.body["messages"]
        for at in reversed(range(len(messages))):
            blocks = parse_blocks(messages[at]["content"]) if messages[at]["role"] == "user" else []
            if known := [one.text for one in blocks if one.speaker == "operator" and one.text in self.scripts]:
                return known[-1], messages[at:]
        raise AssertionError("nobody said anything")

    async def say(self, input: str, *answers: Reply) -> str:
        """Begin a mission in which the model answers so; the id of the call."""
        self.scripts[input] = [*answers]
        return await self.mission.gateway.call("say", {"text": input}, caller="operator")

    async def over(self, call_id: str) -> str:
        """Wait for the mission's end; its reason."""
        await until(lambda: self.close(call_id) is not None)
        return str(self.close(call_id)["result"]["reason"])

    async def do(self, input: str, *answers: Reply) -> list[str]:
        """A whole mission; the results that the model was shown in it."""
        assert await self.over(await self.say(input, *answers)) == "completed"
        return self.results(input)

    def results(self, input: str) -> list[str]:
        """The results that the model was shown since that input; nothing while it was not asked about it."""
        said, since = self._newest_input(self.requests[-1]) if self.requests else ("", [])
        results = [message["content"] for message in since if message["role"] == "tool" and said == input]
        return [one.text for result in results for one in parse_blocks(result)]

    def shown(self) -> str:
        """All that the model was shown of people and skills, as it last saw it."""
        heard = [m["content"] for m in self.requests[-1].body["messages"] if m["role"] in ("user", "tool")]
        return "\n".join(one.text for content in heard for one in parse_blocks(content))

    async def entries(self) -> list[str]:
        """The motions of the robot since the last question."""
        return list((await self.operator("entries")).result)

    async def operator(self, skill: str, /, **arguments: Any) -> CallView:
        view = await self.mission.call(skill, **arguments)
        assert view.outcome is Outcome.COMPLETED, view
        return view

    async def approval(self) -> str:
        """The id of the one call that waits for a decision."""
        while not (pending := (await self.operator("approvals")).result):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
        (view,) = pending
        return str(view["id"])

    def close(self, call_id: str) -> Any:
        """The data of a call's close; None while it is open."""
        closes = [event.data for event in self.mission.events if event.call_id == call_id and event.type == "close"]
        return closes[0] if closes else None


@contextlib.asynccontextmanager
async def living(bus_url: str, port: int, run_dir: Path) -> AsyncIterator[LiveWorld]:
    world = LiveWorld()
    async with ModelServer(world.reply) as server:
        config = {
            "model": "openai:any",
            "base_url": server.url,
            "model_options": {"first_wait_s": 0.01},
            "plan": {"motions": None},
        }
        specs = (
            ModuleSpec(name="line", type="tests.agent.live_modules:Line"),
            ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge"),
            ModuleSpec(name="agent", type="dimos_streams.agent.module:Agent", config=config),
        )
        blueprint = Blueprint(name="line", modules={spec.name: spec for spec in specs})
        async with running(bus_url, port, run_dir, blueprint) as world.mission:
            await until_offered(world.mission)
            yield world


async def until_offered(mission: Mission) -> None:
    async with asyncio.timeout(40):
        while True:
            with contextlib.suppress(SkillError):
                if {"say", "move"} <= {skill.name for skill in await mission.gateway.skills() if skill.available}:
                    return
            await asyncio.sleep(0.05)


def call(skill: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return skill, arguments


async def pieces_become_calls(world: LiveWorld) -> None:
    """B1"""
    results = await world.do("pieces", Reply.calls(call("move", by=1), call("look"), piece=1))
    assert results == ["at 1", "seen from 1"]


async def damaged_calls_never_act(world: LiveWorld) -> None:
    """B2"""
    await world.entries()
    malformed, cut = Reply.calls(("move", "{by: 1}")), Reply.calls(call("move", by=1)).but(cut_after=3)
    results = await world.do("damaged", malformed, cut)
    assert "its arguments are malformed" in results[0]
    assert "its arguments are truncated" in results[1]
    assert await world.entries() == []


async def a_paused_agent_begins_nothing(world: LiveWorld) -> None:
    """B3"""
    await world.operator("pause")
    asked = len(world.requests)
    said = await world.say("paused", Reply.calls(call("move", by=1)))
    await world.operator("approvals")  # a round trip through the agent
    assert len(world.requests) == asked
    await world.operator("resume")
    assert await world.over(said) == "completed"
    assert await world.entries() == ["move 1"]


async def steps_let_one_call_go(world: LiveWorld) -> None:
    """B4"""
    await world.operator("step", mode="on")
    said = await world.say("steps", Reply.calls(call("move", by=1), call("move", by=-2)))
    for number, (skill, by) in enumerate((("move 1", 1), ("move -2", -2)), 1):
        while (await world.operator("step")).text != f"move(by={by}) goes":  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
        while not (done := await world.entries()):
            pass
        assert done == [skill], number
    await world.operator("step", mode="off")
    assert await world.over(said) == "completed"


async def an_abort_ends_and_takes_back(world: LiveWorld) -> None:
    """B5, B6"""
    said = await world.say(
        "there and back", Reply.calls(call("move", by=1), call("move", by=2), call("follow", whom="her"))
    )
    await until(lambda: any(e.text == "following her" for e in world.mission.events))
    await world.operator("abort", rollback=True)
    assert await world.over(said) == "aborted"
    assert await world.entries() == ["move 1", "move 2", "let her go", "back 2", "back 1"]


async def looking_waits_for_moving(world: LiveWorld) -> None:
    """B7"""
    batch = [call("move", by=1), call("look"), call("look"), call("move", by=-1), call("look")]
    at = float((await world.do("where", Reply.calls(call("look"))))[0].split()[-1])
    results = await world.do("move, look, move", Reply.calls(*batch))
    assert [float(text.split()[-1]) - at for text in results] == [1, 1, 1, 0, 0]


async def a_call_is_approved_with_other_arguments(world: LiveWorld) -> None:
    """C5, D5"""
    await world.entries()
    said = await world.say("jump", Reply.calls(call("jump", height_m=3)))
    await world.operator("decide", approval=await world.approval(), decision="approve", arguments={"height_m": 1})
    assert await world.over(said) == "completed"
    said = await world.say("jump again", Reply.calls(call("jump", height_m=2)))
    await world.operator("decide", approval=await world.approval(), decision="reject", reason="Mind the lamp.")
    assert await world.over(said) == "completed"
    assert "Mind the lamp." in world.results("jump again")[0]
    assert await world.entries() == ["jump 1"]


async def large_results_are_kept_by_reference(world: LiveWorld) -> None:
    """D6"""
    (short,) = await world.do("read", Reply.calls(call("read", characters=20_000)))
    assert len(short) < 9_000
    reference = short.split("reference='")[1].split("'")[0]
    rest = Reply.calls(call("read_result", reference=reference, offset=19_980))
    assert "000001999" in (await world.do("and the rest?", rest))[0]


async def a_server_that_fails_is_asked_again(world: LiveWorld) -> None:
    """D7"""
    asked = len(world.requests)
    world.failures += [Reply.error(429, retry_after=0), *[Reply.error(500)] * 3]
    assert await world.do("again", Reply.calls(call("look"))) != []
    assert len(world.requests) == asked + 4 + 2


async def updates_come_after_the_answer(world: LiveWorld) -> None:
    """E1, E5"""
    (answer,) = await world.do("watch", Reply.calls(call("watch", count=3)))
    assert answer.startswith("saw <0>\n")
    shown = world.shown()
    assert [shown.count(f"saw <{number}>") for number in range(3)] == [1, 1, 1]
    assert shown.count("nothing more to see") == 1


async def a_duplicate_replaces_the_first(world: LiveWorld) -> None:
    """E2, E3"""
    await world.entries()
    both = [Reply.calls(call("follow", whom="one")), Reply.calls(call("follow", whom="two"))]
    said = await world.say("follow", *both, Reply.calls(call("list_calls")))
    await until(lambda: len(world.results("follow")) == 3)
    listed = world.results("follow")[2]
    assert "two" in listed
    assert "one" not in listed
    tools = {tool["function"]["name"] for tool in world.requests[-1].body["tools"]}
    assert {"list_calls", "cancel_call"} <= tools
    assert await world.entries() == ["let one go"]
    await world.mission.gateway.cancel(said, "enough")
    await until(lambda: world.close(said) is not None)
    done: list[str] = []
    while not done:
        done = await world.entries()
    assert done == ["let two go"]


async def errors_arrive_as_they_are_meant_to(world: LiveWorld) -> None:
    """E9"""
    calls = Reply.calls(call("fail", how="politely"), call("fail", how="badly"), call("move", buy=1), call("look"))
    polite, internal, argument, _ = await world.do("fail", calls)
    assert polite == "the door is locked"
    assert "internal error" in internal
    assert "secret detail" not in internal
    assert "buy" in argument


async def what_a_skill_begins_passes_the_gates(world: LiveWorld) -> None:
    """A9, B3, C5, D5"""
    await world.entries()
    await world.operator("set_skill", skill="move", enabled=False)
    for skill, arguments, why in (
        ("move", {"by": 1}, "The operator has disabled 'move'"),
        ("set_skill", {"skill": "move", "enabled": True}, "is for operators"),
    ):
        (shown,) = await world.do(f"relay {skill}", Reply.calls(call("relay", skill=skill, arguments=arguments)))
        assert why in shown
    await world.operator("set_skill", skill="move", enabled=True)
    assert await world.entries() == []
    said = await world.say("relay jump", Reply.calls(call("relay", skill="jump", arguments={"height_m": 3})))
    approval = await world.approval()
    await world.operator("pause")
    await world.operator("decide", approval=approval, decision="approve", arguments={"height_m": 1})
    assert await world.entries() == []
    await world.operator("resume")
    assert await world.over(said) == "completed"
    assert await world.entries() == ["jump 1"]
    with pytest.raises(SkillError, match="is the name of an agent"):
        await world.mission.gateway.call("move", {"by": 1}, caller="agent")


SCENARIOS: list[Callable[[LiveWorld], Awaitable[None]]] = [
    pieces_become_calls,
    damaged_calls_never_act,
    a_paused_agent_begins_nothing,
    steps_let_one_call_go,
    an_abort_ends_and_takes_back,
    looking_waits_for_moving,
    a_call_is_approved_with_other_arguments,
    large_results_are_kept_by_reference,
    a_server_that_fails_is_asked_again,
    updates_come_after_the_answer,
    a_duplicate_replaces_the_first,
    errors_arrive_as_they_are_meant_to,
    what_a_skill_begins_passes_the_gates,
]


@pytest.mark.feature(
    *("B1", "B2", "B3", "B4", "B5", "B6", "B7", "C5", "D5", "D6", "D7", "E1", "E2", "E3", "E5", "E9", "F8")
)
def test_a_sample_of_rows_over_processes(bus_url: str, free_port: int, tmp_path: Path) -> None:
    async def main() -> None:
        async with living(bus_url, free_port, tmp_path) as world:
            for scenario in SCENARIOS:
                try:
                    async with asyncio.timeout(15):
                        await scenario(world)
                except BaseException as error:
                    error.add_note(f"{scenario.__name__} ({scenario.__doc__})")
                    raise

    asyncio.run(main())


@pytest.mark.feature("B10", "E5")
def test_a_killed_agent_goes_on_and_delivers_nothing_twice(bus_url: str, free_port: int, tmp_path: Path) -> None:
    count = 30

    async def main() -> None:
        async with living(bus_url, free_port, tmp_path) as world:
            watch = Reply.calls(call("watch", count=count, pause_s=0.1))
            await world.say("watch", watch, Reply.calls(call("move", by=1)))
            await until(lambda: any(event.text == "saw <5>" for event in world.mission.events))
            world.mission.kill("agent")
            await world.mission.until_restarted("agent")
            await until(lambda: bool(finished(tmp_path)), 30)
            (done,) = finished(tmp_path)
            assert done.data["reason"] == "completed"
            shown = world.shown()
            assert [shown.count(f"saw <{number}>") for number in range(count)] == [1] * count
            assert shown.count("nothing more to see") == 1
            assert await world.entries() == ["move 1"]

    asyncio.run(main())


def finished(run_dir: Path) -> list[AgentEvent]:
    """The ends of the missions in the record."""
    missions = read_missions(run_dir / FOLDER) if (run_dir / FOLDER).is_dir() else []
    return [mission.done for mission in missions if mission.done is not None]
