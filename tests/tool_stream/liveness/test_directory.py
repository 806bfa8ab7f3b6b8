"""Who is alive and offers what, as heartbeats report it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dimos_streams import clock
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import BusError, UnknownSkillError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.module import MAX_STATE
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness import module_table
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.liveness.skill_fragments import described
from dimos_streams.tool_stream.protocol.channels import DESCRIBE, REQUESTS, STATUS
from tests.helpers import hold_up, refuse_after


class Heard:
    """A directory, a bus to speak to it, and what it asks."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.directory = ModuleDirectory(bus)
        self.asked: list[str] = []
        bus.subscribe(REQUESTS, lambda _, data: self.asked.append(decode(ToolStreamRequest, data).kind))

    async def beat(self, module: str, instance: str = "1", *, skills: str = "", **more: object) -> None:
        if skills:
            described = [{"name": name, "description": "", "parameters": {}} for name in skills.split()]
            more = {"skills_json": json.dumps(described), "skills_version": skills, **more}
        if instance:
            more = {"health": "ok", **more}
        self.bus.publish(STATUS, encode(ModuleStatus(module=module, instance=instance, **more)))  # type: ignore[arg-type]
        await asyncio.sleep(0.001)

    def health(self, module: str) -> str:
        view = self.directory.module(module)
        assert view is not None
        return view.health


@asynccontextmanager
async def heard() -> AsyncIterator[Heard]:
    bus = create_bus("memq://")
    await bus.open()
    world = Heard(bus)
    world.directory.start()
    yield world
    world.directory.stop()
    world.directory.stop()
    await bus.close()


@pytest.mark.virtual_time
async def test_modules_are_heard_though_the_bus_refuses_to_hear_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async with heard() as world:
        directory = ModuleDirectory(world.bus, ["robot1/"])
        directory.start()
        subscribed = len(world.bus.subscriptions())
        with monkeypatch.context() as system:
            refuse_after(world.bus, system, 0)
            with pytest.raises(BusError, match="the bus refuses"):
                directory.hear_all()
        await world.beat("robot1/x")
        assert directory.module("robot1/x") is not None
        directory.hear_all()
        assert {each.namespaces for each in world.bus.subscriptions()} == {None}
        assert len(world.bus.subscriptions()) == subscribed
        directory.stop()


@pytest.mark.virtual_time
async def test_of_several_with_one_skill_the_living_and_the_eldest_has_it() -> None:
    async with heard() as world:
        find = world.directory.find
        await world.beat("b", skills="go stay")
        await world.beat("a", skills="go")
        assert [(view.name, info.name) for view, info in world.directory.skills()] == [
            ("a", "go"), ("b", "go"), ("b", "stay"),
        ]  # fmt: skip
        assert find("go")[0].name == "b"
        await asyncio.sleep(ALIVE_S - 0.01)
        await world.beat("a")
        assert find("go")[0].name == "b", "not silent for long enough"
        await asyncio.sleep(0.02)
        assert find("go")[0].name == "a"
        assert find("stay")[0].name == "b"
        await world.beat("b")
        assert find("go")[0].name == "b"
        with pytest.raises(UnknownSkillError, match=r"'goo'.*did you mean 'go'"):
            find("goo")
        assert world.directory.module("c") is None
        await asyncio.gather(world.beat("e", skills="both"), world.beat("d", skills="both"))
        assert find("both")[0].name == "d", "known for equally long"


@pytest.mark.virtual_time
async def test_of_two_descriptions_of_one_version_the_one_that_is_given_again_when_asked_for_holds() -> None:
    async with heard() as world:
        await world.beat("a", skills="go")
        await world.beat("a", skills_json="[]", skills_version="go")  # a damaged copy
        world.asked.clear()
        for _ in range(3):
            await asyncio.sleep(1)
            await world.beat("a", skills_version="go")
        assert world.asked == [DESCRIBE], "once"
        await world.beat("a", skills="go")
        assert [info.name for _, info in world.directory.skills()] == ["go"]
        await asyncio.sleep(1)
        await world.beat("a", skills_version="go")
        await world.beat("a", skills="go")
        assert world.asked == [DESCRIBE] * 2, "also whether that was the damaged one"
        await asyncio.sleep(1)
        await world.beat("a", skills_version="go")
        assert world.asked == [DESCRIBE] * 2


@pytest.mark.virtual_time
async def test_what_it_does_not_know_it_asks_for_but_not_all_the_time() -> None:
    async with heard() as world:
        await asyncio.sleep(0.001)
        assert world.asked == ["describe"], "everybody introduces themselves"
        await world.beat("a", skills_version="1")
        assert world.asked == ["describe"]
        await asyncio.sleep(0.2)
        await world.beat("a", skills_version="1")
        await world.beat("a", skills_version="1")
        assert world.asked == ["describe"] * 2
        await asyncio.sleep(0.2)
        await world.beat("a", skills="go")
        await world.beat("a", skills_version="go")
        assert world.asked == ["describe"] * 2
        await world.beat("a", skills_version="other")
        assert world.asked == ["describe"] * 3
        assert world.directory.find("go")[0].name == "a", "until it is known what it offers instead"


@pytest.mark.virtual_time
async def test_who_is_silent_is_gone_and_somebody_elses_word_counts_meanwhile() -> None:
    async with heard() as world:
        await world.beat("a", health="h" * 300)
        assert world.health("a") == "h" * 199 + "…"
        await asyncio.sleep(ALIVE_S - 0.1)
        await world.beat("a", "", health="hung: w" + "w" * 300)
        assert world.health("a") == "hung: w" + "w" * 192 + "…"
        await asyncio.sleep(0.2)
        assert world.health("a").startswith("hung")
        await asyncio.sleep(1.31)
        assert world.health("a") == "gone: silent for 2.9 s"
        view = world.directory.module("a")
        assert view is not None
        assert not view.alive
        await world.beat("a", "", health="ok")
        assert world.health("a").startswith("gone: silent"), "that it is well only it can say"
        await world.beat("a", "", health="hung: again")
        assert world.health("a") == "hung: again"
        await world.beat("a")
        assert world.health("a") == "ok", "its own word is the newer one"
        await world.beat("a", "", health="hung: says who")
        assert world.health("a") == "ok", "who speaks speaks for itself"
        again = world.directory.module("a")
        assert again is not None
        assert again.alive
        await world.beat("b", "", health="gone: of whom nobody has heard")
        assert [view.name for view in world.directory.modules()] == ["a"]
        assert (world.directory.malformed, world.directory.ignored) == (0, 0)


@pytest.mark.virtual_time
async def test_a_state_that_is_too_large_says_nothing() -> None:
    async with heard() as world:
        fits = json.dumps({"x": "y" * (MAX_STATE - len('{"x": ""}'))})
        for state, reported in (
            ('{"a": 1}', {"a": 1}),
            ("", {}),
            (fits, json.loads(fits)),
            (fits + " ", {}),
            ("[", {}),
        ):
            await world.beat("a", state_json=state)
            view = world.directory.module("a")
            assert view is not None
            assert view.state == reported
            assert view.health == "ok"
            await world.beat("a", state_json=state)
        assert world.directory.malformed == 2, "each is reported once"


@pytest.mark.virtual_time
async def test_room_is_made_by_forgetting_the_one_that_is_gone_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_table, "MAX_MODULES", 2)
    async with heard() as world:
        await world.beat("a")
        await asyncio.sleep(1)
        await world.beat("b")
        await world.beat("c")
        assert [view.name for view in world.directory.modules()] == ["a", "b"]
        assert world.directory.ignored == 1
        await asyncio.sleep(0.6)
        await world.beat("c")
        assert [view.name for view in world.directory.modules()] == ["b", "c"]
        await world.beat("b")
        assert world.directory.ignored == 1


@pytest.mark.virtual_time
async def test_who_was_not_heard_while_this_process_stood_still_makes_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loop that does not run is a clock that jumps."""
    monkeypatch.setattr(module_table, "MAX_MODULES", 1)
    async with heard() as world:
        await world.beat("a", skills="go")
        hold_up(5.0)
        await world.beat("stranger")
        assert world.directory.module("stranger") is None
        assert world.health("a") == "ok"
        await asyncio.sleep(ALIVE_S + 0.1)
        await world.beat("stranger")
        assert world.health("stranger") == "ok"


@pytest.mark.virtual_time
async def test_skills_and_states_of_all_are_bounded_and_those_that_are_gone_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module_table, "MAX_BYTES", 200)
    async with heard() as world:
        await world.beat("a", skills="a1 a2")
        await world.beat("b", skills="b1")
        await world.beat("c", skills="c1 c2")
        names = [info.name for _, info in world.directory.skills()]
        assert names == ["a1", "a2", "b1"]
        assert world.directory.ignored == 1
        await world.beat("b", state_json='{"a": "%s"}' % ("x" * 100))
        assert world.directory.ignored == 2
        await asyncio.sleep(ALIVE_S)
        await world.beat("b")
        await asyncio.sleep(0.1)
        await world.beat("c", skills="c2 c3")
        assert [info.name for _, info in world.directory.skills()] == ["b1", "c2", "c3"]
        assert [view.name for view in world.directory.modules()] == ["b", "c"]
        assert world.directory.ignored == 2


@pytest.mark.virtual_time
@pytest.mark.feature("F6")
@pytest.mark.parametrize("parts", [1, 3])
async def test_skills_that_found_no_room_are_asked_for_again_when_there_is(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    infos = [SkillInfo(name=f"s{number}", description="x" * 1000, parameters={}) for number in range(25 * parts)]
    texts = described("real", infos)
    assert (len(texts) > 1) == (parts > 1)
    size = sum(map(len, texts))
    monkeypatch.setattr(module_table, "MAX_BYTES", int(1.5 * size))
    bus = create_bus("memq://")
    await bus.open()
    directory, asked = ModuleDirectory(bus), list[float]()
    bus.subscribe(REQUESTS, lambda _, data: asked.append(clock.monotonic()))
    directory.start()

    def beat(name: str, text: str = "") -> None:
        bus.publish(STATUS, encode(ModuleStatus(module=name, instance="1", skills_version="1", skills_json=text)))

    async def beats(*names: str) -> None:
        for _ in range(20):
            for name in names:
                beat(name)
            await asyncio.sleep(0.25)

    for name in ("other", "real"):
        for text in texts:
            beat(name, text)
    await beats("other", "real")
    began = clock.monotonic()
    await beats("other", "real")
    assert {view.name for view, _ in directory.skills()} == {"other"}
    assert max(asked) < began, "while there is no room nobody is asked"
    asked.clear()
    await beats("real")
    await beats("real")
    assert asked
    for text in texts:
        beat("real", text)
    await asyncio.sleep(0.01)
    assert [info.name for view, info in directory.skills() if view.name == "real"] == [info.name for info in infos]
    asked.clear()
    await beats("real")
    assert not asked
    directory.stop()
    await bus.close()


@pytest.mark.virtual_time
@pytest.mark.feature("F6")
async def test_a_state_that_found_no_room_is_taken_when_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A velocity gate says the same of itself for hours: who has missed it would never know of the gate."""
    monkeypatch.setattr(module_table, "MAX_BYTES", 100)
    async with heard() as world:
        await world.beat("forged", state_json='{"x": "%s"}' % ("x" * 80))
        await world.beat("gate", state_json='{"gate": {}}', skills="go")
        assert world.directory.reporting("gate") == []
        await asyncio.sleep(ALIVE_S + 0.1)
        await world.beat("gate", state_json='{"gate": {}}')
        assert [view.name for view in world.directory.reporting("gate")] == ["gate"]


@pytest.mark.virtual_time
@pytest.mark.feature("F6")
async def test_skills_of_names_that_nobody_has_spoken_for_long_leave_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = len(json.dumps([{"name": "a1", "description": "", "parameters": {}}]))
    monkeypatch.setattr(module_table, "MAX_BYTES", 4 * size)
    monkeypatch.setattr(module_table, "MAX_NEW_BYTES", 2 * size)
    async with heard() as world:
        for _ in range(10):
            await world.beat("a", skills="a1")
            await asyncio.sleep(0.25)
        for name in ("b", "c", "d"):
            await world.beat(name, skills=f"{name}1")
        assert [info.name for _, info in world.directory.skills()] == ["a1", "b1", "c1"]
        await world.beat("a", skills="a1 a2")
        assert [info.name for _, info in world.directory.skills()] == ["a1", "a2", "b1", "c1"]


@pytest.mark.virtual_time
async def test_no_more_that_are_gone_are_forgotten_than_there_must_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = len(json.dumps([{"name": "a1", "description": "", "parameters": {}}]))
    monkeypatch.setattr(module_table, "MAX_BYTES", 2 * size)
    async with heard() as world:
        await world.beat("a", skills="a1")
        await world.beat("b", skills="b1")
        await asyncio.sleep(ALIVE_S + 0.1)
        await world.beat("c", skills="c1")
        assert [info.name for _, info in world.directory.skills()] == ["b1", "c1"]


@pytest.mark.virtual_time
async def test_listeners_hear_what_the_directory_has_taken_until_they_end_it() -> None:
    async with heard() as world:
        reported: list[str] = []
        end = world.directory.listen(lambda status: reported.append(status.module))
        assert not world.directory.is_active("a", "1")
        await world.beat("a")
        await world.beat("bad\nname")
        await world.beat("a", call_ids=["../x"], last_seqs=[1])
        await world.beat("a", "", health="word")
        assert (reported, world.directory.malformed) == (["a"], 2)
        assert world.directory.is_active("a", "1")
        assert not world.directory.is_active("a", "2")
        assert not world.directory.superseded("a", "1")
        assert not world.directory.superseded("b", "1")
        end()
        end()
        await world.beat("a")
        assert reported == ["a"]
        world.directory.stop()
        await world.beat("b")
        assert world.directory.module("b") is None


@pytest.mark.virtual_time
async def test_a_skill_that_can_not_be_used_leaves_nothing_of_an_instance_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with heard() as world:
        await world.beat("m", "old", skills="a b")
        await asyncio.sleep(ALIVE_S + 1)
        skills = [{"name": "c", "description": "", "parameters": {}}, {"name": "d", "description": "", "tags": None}]
        await world.beat("m", "new", skills_json=json.dumps(skills), skills_version="2")
        await asyncio.sleep(3)
        await world.beat("m", "new", skills_version="2")
        assert [info.name for _, info in world.directory.skills()] == ["c"]
        await world.beat("m", "new", skills_json="[", skills_version="3")
    messages = [record.getMessage() for record in caplog.records]
    assert messages[-2].startswith("skipped a skill of module 'm': 'd': parameters: it is missing")
    assert messages[-1].startswith("skipped a heartbeat of module 'm': ")
