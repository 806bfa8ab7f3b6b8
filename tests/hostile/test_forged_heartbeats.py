"""Heartbeats that no module sends: what they cost, what is kept of them, and what is believed."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import SkillError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.arguments.schemas import check_arguments, check_schema
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.heartbeat import MAX_CALLS
from dimos_streams.tool_stream.liveness.module_table import MAX_MODULES
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.protocol.channels import STATUS

pytestmark = pytest.mark.feature("F6")


def skills(name: str, size: int = 0, schema: object = None) -> str:
    return json.dumps([{"name": name, "description": "x" * size, "parameters": schema or {}}])


def heartbeat(module: str = "m", instance: str = "1", **fields: object) -> bytes:
    return encode(ModuleStatus(module=module, instance=instance, **fields))  # type: ignore[arg-type]


def exponential(depth: int) -> dict[str, object]:
    """A small schema that is as large as 2 to the power of ``depth`` with each reference put in."""
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(depth)}
    return {"$ref": "#/$defs/l0", "$defs": {**levels, f"l{depth}": {"type": "object"}}}


@asynccontextmanager
async def directory_on_a_bus() -> AsyncIterator[tuple[Bus, ModuleDirectory]]:
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()
    yield bus, directory
    directory.stop()
    await bus.close()


@pytest.mark.virtual_time
async def test_a_heartbeat_that_names_more_calls_than_any_module_runs_is_skipped() -> None:
    async with directory_on_a_bus() as (bus, directory):
        ids = [f"call-{n}" for n in range(12_000)]
        began = time.process_time()
        for number in range(50):
            bus.publish(STATUS, heartbeat(call_ids=ids[: MAX_CALLS + 1], last_seqs=[2**30] * (MAX_CALLS + 1)))
            if number % 25 == 24:
                await asyncio.sleep(0)  # more of them together are more than the queue has room for
        spent = time.process_time() - began
        bus.publish(STATUS, heartbeat(call_ids=ids, last_seqs=[2**30] * len(ids)))
        began = time.process_time()
        await asyncio.sleep(0.1)
        assert directory.malformed == 51
        assert directory.modules() == []
        assert time.process_time() - began < max(0.1, spent), "its calls were not even read"


NAMES = ("", "go\napproved by an operator", "go ", "g\u043e", "\uff47o", "go\u202e", "a/go", "\ud800", "x" * 201)


def described_as(**fields: object) -> dict[str, object]:
    return {"name": "go", "description": "Go.", "parameters": {}, **fields}


@pytest.mark.parametrize(
    "bad",
    [
        *(described_as(name=name) for name in NAMES),
        described_as(undo="a\nb"),
        described_as(frame="odom\r"),
        described_as(resources=["base", "left arm"]),
        *(described_as(parameters={"properties": {name: {}}}) for name in ("", "a b", "a\nb", "a\x1b[2J", "\u202e")),
    ],
    ids=repr,
)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.virtual_time
async def test_a_skill_with_a_name_that_could_pass_for_something_else_is_left_out_alone(
    bad: dict[str, object], parts: int, caplog: pytest.LogCaptureFixture
) -> None:
    good = [
        described_as(name="drive", parameters={"properties": {"gr\u00f6\u00dfe_m": {}}}),
        described_as(name="r_stop"),
    ]
    lists = [[good[0], bad, good[1]]] if parts == 1 else [[good[0], bad], [good[1]]]
    async with directory_on_a_bus() as (bus, directory):
        for number, offered in enumerate(lists):
            text: object = offered if parts == 1 else {"part": number, "parts": parts, "skills": offered}
            described = json.dumps(text, separators=(",", ":"))
            bus.publish(STATUS, heartbeat(skills_json=described, skills_version="1"))
            await asyncio.sleep(0.01)
        (view,) = directory.modules()
        assert [info.name for info in view.skills] == ["drive", "r_stop"]
        assert directory.malformed == 1
        bus.publish(STATUS, heartbeat(skills_json=described, skills_version="1"))
        await asyncio.sleep(0.01)
        assert directory.malformed == 1, "what is known is not read again"
    (record,) = (each for each in caplog.records if each.name.startswith("dimos_streams."))
    assert record.message.startswith("skipped a skill of module 'm': ")
    assert record.message.isprintable()
    assert "; valid: " in record.message


@pytest.mark.parametrize("name", [*(name for name in NAMES if name not in ("\ud800", "a/go"))])
@pytest.mark.virtual_time
async def test_a_module_with_such_a_name_is_not_heard(name: str) -> None:
    async with directory_on_a_bus() as (bus, directory):
        bus.publish(STATUS, heartbeat(name, skills_json=skills("go"), skills_version="1"))
        await asyncio.sleep(0.01)
        assert (directory.modules(), directory.malformed) == ([], 1)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_schemas_are_bounded_in_all_and_those_of_the_living_stay() -> None:
    async with directory_on_a_bus() as (bus, directory):
        bus.publish(STATUS, heartbeat("real", skills_json=skills("real"), skills_version="1"))
        await asyncio.sleep(0.01)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(100):
            size = 1_000_000 if number % 2 else 60_000
            bus.publish(STATUS, heartbeat(f"forged{number}", skills_json=skills("s", size), skills_version="1"))
            if number % 3 == 0:
                bus.publish(STATUS, heartbeat("real", skills_version="1"))
            await asyncio.sleep(0.25)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 10e6
        assert directory.find("real")[0].name == "real"


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_forged_names_do_not_keep_a_new_module_out() -> None:
    async with directory_on_a_bus() as (bus, directory):
        for number in range(3 * MAX_MODULES):
            bus.publish(STATUS, heartbeat(f"forged{number}"))
        await asyncio.sleep(ALIVE_S + 0.5)
        bus.publish(STATUS, heartbeat("new"))
        await asyncio.sleep(0.01)
        assert directory.module("new") is not None
        assert len(directory.modules()) <= MAX_MODULES
        for wave in range(5):
            for number in range(500):
                bus.publish(STATUS, heartbeat(f"forged{wave}-{number}"))
            await asyncio.sleep(1.0)
            bus.publish(STATUS, heartbeat("new"))
        await asyncio.sleep(0.01)
        newest = directory.module("new")
        assert newest is not None
        assert newest.alive
        assert len(directory.modules()) <= MAX_MODULES


@pytest.mark.virtual_time
@pytest.mark.feature("F5")
async def test_another_instance_is_believed_when_the_first_is_silent() -> None:
    async with directory_on_a_bus() as (bus, directory):

        async def beat(times: int) -> None:
            for _ in range(times):
                bus.publish(STATUS, heartbeat(skills_json=skills("drive"), skills_version="1", health="fine"))
                await asyncio.sleep(0.25)

        await beat(4)
        for number in range(20):
            forged = heartbeat("m", f"forged{number}", skills_json=skills("other"), skills_version="2", health="bad")
            bus.publish(STATUS, forged)
        await asyncio.sleep(0.01)
        await beat(4)
        (view,) = directory.modules()
        assert (view.instance, view.health, view.skills[0].name) == ("1", "fine", "drive")
        assert not directory.superseded("m", "1")
        assert directory.contradictions > 0
        for _ in range(5):
            bus.publish(STATUS, heartbeat("m", "next", skills_json=skills("other"), skills_version="2"))
            await asyncio.sleep(0.25)
        (view,) = directory.modules()
        assert (view.instance, view.skills[0].name) == ("next", "other")
        assert directory.superseded("m", "1")


@pytest.mark.virtual_time
async def test_a_module_that_comes_later_with_the_same_skill_does_not_get_its_calls() -> None:
    async with directory_on_a_bus() as (bus, directory):
        bus.publish(STATUS, heartbeat("real", skills_json=skills("drive"), skills_version="1"))
        await asyncio.sleep(0.2)
        bus.publish(STATUS, heartbeat("a-fake", skills_json=skills("drive"), skills_version="1"))
        await asyncio.sleep(0.01)
        assert directory.find("drive")[0].name == "real"
        await asyncio.sleep(ALIVE_S)
        bus.publish(STATUS, heartbeat("a-fake"))
        await asyncio.sleep(0.01)
        assert directory.find("drive")[0].name == "a-fake", "the other one is gone"


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (exponential(16), "more than 20000 parts"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "contains itself"),
        ({"$ref": "http://127.0.0.1:9/x"}, "not local"),
        ({"$ref": "#/nowhere"}, "leads nowhere"),
        ({"$dynamicRef": "#x"}, "only \\$ref"),
    ],
)
async def test_schemas_that_take_for_ever_are_none(schema: dict[str, object], why: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=why):
        check_schema(schema)
    with pytest.raises(SkillError, match=f"the schema of skill 's' can't be used: .*{why}"):
        check_arguments(SkillInfo(name="s", description="", parameters=schema), {})
    assert time.process_time() - began < 1.0
    async with directory_on_a_bus() as (bus, directory):
        bus.publish(STATUS, heartbeat(skills_json=skills("s", schema=schema), skills_version="1"))
        await asyncio.sleep(0.01)
        (view,) = directory.modules()
        assert (directory.malformed, view.skills, directory.skills()) == (1, (), [])


def test_schemas_may_use_definitions_more_than_once() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    schema = {
        "properties": {"from": {"$ref": "#/$defs/P"}, "to": {"$ref": "#/$defs/P"}, "$ref": {"type": "string"}},
        "$defs": {"P": point},
    }
    check_arguments(SkillInfo(name="s", description="", parameters=schema), {"from": {"x": 1}, "to": {"x": 2}})
