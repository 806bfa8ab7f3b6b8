"""A module with more skills than fit into one heartbeat."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dimos_streams.blueprint import blueprint, module
from dimos_streams.blueprint.check import check
from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import SkillInfo, skill
from dimos_streams.testing.harness import ModuleHarness
from dimos_streams.tool_stream.liveness import module_table
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.skill_fragments import (
    FRAGMENT_BYTES,
    MAX_FRAGMENTS,
    described,
    fragment_in,
    fragment_number,
    is_fragment,
    skills_in,
)
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.helpers import until

SKILLS = 200


def _skill(number: int, words: int) -> Any:
    async def work(self: Module, metres: float = 1.0, name: str = "") -> int:
        return number

    work.__name__ = f"work_{number}"
    work.__doc__ = f"Do work number {number}. " + "It is described at some length. " * words
    return skill(work)


def _class(name: str, skills: int, words: int = 10) -> type[Module]:
    body = {f"work_{number}": _skill(number, words) for number in range(skills)}
    return type(name, (Module,), {"__module__": __name__, "__annotations__": {"config": ModuleConfig}, **body})


Handy = _class("Handy", SKILLS)
Wordy = _class("Wordy", 1, words=2000)
Endless = _class("Endless", 700, words=20)


def infos(count: int, size: int) -> list[SkillInfo]:
    return [SkillInfo(name=f"s{i}", description="x" * size, parameters={"type": "object"}) for i in range(count)]


@pytest.mark.slow
@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_a_module_may_have_two_hundred_skills() -> None:
    async with ModuleHarness(Handy, name="handy") as harness:
        sent: list[bytes] = []
        harness.bus.subscribe(STATUS, lambda channel, data: sent.append(data))
        directory = ModuleDirectory(harness.bus)
        directory.start()
        await until(lambda: len(directory.skills()) == SKILLS)
        assert [info.name for _, info in directory.skills()] == [f"work_{number}" for number in range(SKILLS)]
        assert max(map(len, sent)) < 60_000
        parts = [decode(ModuleStatus, data, channel=STATUS).skills_json for data in sent]
        assert sum(map(is_fragment, parts)) >= 3
        call = await harness.call("work_199")
        assert await call.result() == 199
        directory.stop()


@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_parts_that_are_lost_come_again_and_none_of_another_version_is_mixed_in() -> None:
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    asked: list[bytes] = []
    bus.subscribe("/tool_stream_requests#dimos_streams.ToolStreamRequest", lambda channel, data: asked.append(data))

    def beat(version: str, text: str = "") -> None:
        status = ModuleStatus(module="m", instance="i", started_utime=1, skills_version=version, skills_json=text)
        bus.publish(STATUS, encode(status))

    old, new = described("m", infos(90, 1000)), described("m", infos(80, 1100))
    assert (len(old), len(new)) == (3, 3)
    for text in old[:2]:
        beat("old", text)
    beat("old")
    await asyncio.sleep(0.3)
    assert directory.skills() == []
    for text in (new[2], old[2], new[1], new[0]):
        beat("old" if text in old else "new", text)
    await asyncio.sleep(0.1)
    assert directory.skills() == []
    for text in new:
        beat("new", text)
    await asyncio.sleep(0.1)
    assert [len(info.description) for _, info in directory.skills()] == [1100] * 80
    beat("short", described("m", infos(1, 10))[0])
    await asyncio.sleep(0.1)
    assert len(directory.skills()) == 1
    beat("bad", '{"part":9,"parts":3,"skills":[]}')
    beat("bad", '{"part":0,"parts":999,"skills":[]}')
    beat("bad", '{"part":0,"parts":3,"skills":7}')
    await asyncio.sleep(0.1)
    assert len(directory.skills()) == 1
    assert directory.malformed == 2
    await bus.close()


@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_a_schema_that_would_take_for_ever_is_refused_in_a_part_too() -> None:
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    endless = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    *sound, last = infos(90, 1000)
    texts = described("m", [*sound, last.model_copy(update={"parameters": endless})])
    assert len(texts) > 1
    for text in texts:
        bus.publish(STATUS, encode(ModuleStatus(module="m", instance="i", skills_version="1", skills_json=text)))
    await asyncio.sleep(0.1)
    assert [info.name for _, info in directory.skills()] == [info.name for info in sound]
    assert directory.malformed == 1
    directory.stop()
    await bus.close()


@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_parts_whose_rest_never_comes_take_no_room_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_table, "MAX_BYTES", 200_000)
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    first, whole = described("m", infos(90, 1000))[0], described("m", infos(1, 10))[0]
    for number in range(5):
        for version, text in ((f"long{number}", first), (f"short{number}", whole + " " * number)):
            status = ModuleStatus(module="m", instance="i", skills_version=version, skills_json=text)
            bus.publish(STATUS, encode(status))
            await asyncio.sleep(0.01)
    assert (len(directory.skills()), directory.ignored) == (1, 0)
    directory.stop()
    await bus.close()


def entry(**fields: object) -> dict[str, object]:
    return {"name": "go", "description": "", "parameters": {}, **fields}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (entry(tags=None), "'go': tags: it must be a list"),
        (entry(parameters={"properties": {"a": {"$ref": "#a"}}}), "'go': its $ref '#a' is not local"),
        (entry(parameters={"type": "array"}), "'go': it describes no object with properties: its type is 'array'"),
        (entry(parameters={"properties": {"a": 5}}), "'go': it describes no object with properties: they are"),
        (entry(name=7), "number 2: name: it must be a text"),
        ("go", "number 2: it: it must be an object"),
    ],
)
def test_a_skill_that_can_not_be_used_is_left_out_alone_and_named(bad: object, why: str) -> None:
    skills = [entry(name="sound"), bad, entry(name="other", parameters={"properties": {"a": True}})]
    skipped: list[str] = []
    assert [info.name for info in skills_in(json.dumps(skills), skipped.append)] == ["sound", "other"]
    fragment = fragment_in(json.dumps({"part": 0, "parts": 2, "skills": skills}), skipped.append)
    assert [info.name for info in fragment.skills] == ["sound", "other"]
    assert len(skipped) == 2
    assert all(text.startswith(why) for text in skipped)


def test_a_description_that_comes_again_is_read_as_before() -> None:
    skipped: list[str] = []
    for skills in ([entry(name="sound")], [entry(name="sound"), "go"]):
        text = json.dumps(skills)
        assert (
            skills_in(text, skipped.append)
            == skills_in(text, skipped.append)
            == (SkillInfo.model_validate(entry(name="sound")),)
        )
    assert len(skipped) == 2, "each time somebody is told what was left out"


def test_a_description_with_little_else_than_what_can_not_be_used_is_none() -> None:
    skipped: list[str] = []
    with pytest.raises(ValueError, match="more than 100 of its skills"):
        skills_in(json.dumps([{}] * 20_000), skipped.append)
    assert len(skipped) == 100


def test_descriptions_are_split_only_where_they_must_be() -> None:
    whole = described("m", infos(3, 100))
    assert len(whole) == 1
    assert [info["name"] for info in json.loads(whole[0])] == ["s0", "s1", "s2"]
    assert described("m", []) == ("[]",)
    parts = described("m", infos(100, 1000))
    assert [fragment_number(text) for text in parts] == list(range(len(parts)))
    assert all(len(text) < FRAGMENT_BYTES + 100 for text in parts)
    assert fragment_number(whole[0]) == fragment_number('{"part":x') == 0


@pytest.mark.slow
@pytest.mark.feature("K3")
def test_check_sees_schemas_that_are_too_large_for_heartbeats() -> None:
    assert check(blueprint("x", module(Handy))) == []
    [wordy] = check(blueprint("x", module(Wordy)))
    assert "skill 'work_0' has a schema of" in wordy.text
    assert wordy.text.endswith(f"bytes, {FRAGMENT_BYTES} are possible")
    [endless] = check(blueprint("x", module(Endless)))
    assert endless.text.endswith(f"bytes, {MAX_FRAGMENTS * FRAGMENT_BYTES} are possible")
