"""Bounds that hold whatever comes in."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm import guard
from dimos_streams.bus.lcm.bus import LcmBus
from dimos_streams.bus.sizes import largest_on
from dimos_streams.bus.subscription import CAPACITY_BYTES
from dimos_streams.common.limited_log import LimitedLog, LimitedRecords
from dimos_streams.errors import SkillError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall, ToolStreamEvent
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.skill import SkillInfo
from dimos_streams.testing import FaultBus, FaultInjection, Faults
from dimos_streams.tool_stream.arguments.schemas import check_arguments
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS, STATUS
from tests.helpers import run_virtual, until
from tests.hostile.datagrams import Sender
from tests.hostile.texts import HOSTILE_JSON
from tests.live.modules import Mover, Sleeper


@pytest.mark.virtual_time
async def test_a_queue_holds_no_more_than_its_bytes() -> None:
    bus = create_bus("memq://")
    await bus.open()
    heard: list[bytes] = []
    subscription = bus.subscribe("/large", lambda _, data: heard.append(data[:4]), capacity=100_000)
    size, count = 1_000_000, CAPACITY_BYTES // 1_000_000 + 20
    for number in range(count):
        bus.publish("/large", struct.pack(">I", number) + bytes(size - 4))
    assert subscription.statistics().waiting * size <= CAPACITY_BYTES
    await until(lambda: subscription.statistics().waiting == 0)
    assert struct.unpack(">I", heard[-1]) == (count - 1,), "the oldest go"
    assert subscription.statistics().dropped == count - len(heard)
    await bus.close()


@pytest.mark.live
@pytest.mark.feature("F6")
def test_the_lcm_library_keeps_no_more_than_the_bytes_of_a_few_messages(bus_url: str) -> None:
    async def check() -> None:
        size, heard, newest_mark = 20_000, 0, b""

        def on_message(channel: str, data: bytes) -> None:
            nonlocal heard, newest_mark
            if len(data) == size:
                heard += 1
            else:
                newest_mark = data

        async def all_has_come(mark: bytes) -> None:
            while newest_mark != mark:
                bus.publish("/large", mark)  # behind the rest, and again: it may be lost as well
                await asyncio.sleep(0.01)

        bus = create_bus(bus_url)
        await bus.open()
        bus.subscribe("/large", on_message)
        while heard < 100:
            bus.publish("/large", bytes(size))
            await asyncio.sleep(0)
        await all_has_come(b"before")
        before = heard
        for _ in range(1000):  # meanwhile the loop is held up
            bus.publish("/large", bytes(size))
        time.sleep(0.5)  # noqa: ASYNC251 -- LCM's thread empties the kernel's buffer meanwhile
        await all_has_come(b"after")
        assert 0 < heard - before <= 200, "4 MB, of 20"
        await bus.close()

    asyncio.run(check())


def test_a_datagram_cannot_claim_to_be_a_message_of_gigabytes(bus_url: str) -> None:
    def fragment(size: int, offset: int, number: int, count: int) -> bytes:
        channel = b"" if number else b"/claim\0"
        return b"LC03" + struct.pack(">IIIHH", size, size, offset, number, count) + channel + bytes(100)

    async def check() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        assert isinstance(bus, LcmBus)
        assert (bus.guarded, bus.notice) == (True, "")
        heard: list[int] = []
        bus.subscribe("/claim", lambda _, data: heard.append(len(data)))
        sender = Sender(bus_url)
        sender.send([fragment(2**28, 0, 0, 1), fragment(2**28, 0, 0, 65535), fragment(100, 2**32 - 50, 1, 2)])
        sender.close()
        bus.publish("/claim", bytes(90_000))
        await until(lambda: heard)
        assert heard == [90_000], "what is honestly fragmented arrives"
        await bus.close()

    asyncio.run(check())


@pytest.mark.live
@pytest.mark.feature("F6")
@pytest.mark.usefixtures("lcm_library")
def test_parts_of_what_is_too_large_for_its_channel_are_not_kept(bus_url: str) -> None:
    def all_but_the_last(number: int) -> list[bytes]:
        size, step = 1_000_000, 60_000
        starts = range(0, size, step)
        head = (
            b"LC03" + struct.pack(">IIIHH", number, size, at, index, len(starts)) for index, at in enumerate(starts)
        )
        names = [EVENTS.encode() + b"\0", *[b""] * len(starts)]
        return [each + name + bytes(step) for each, name in zip(head, names, strict=False)][:-1]

    async def check() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        heard: list[int] = []
        host = ModuleHost(bus)
        await host.start(Mover(name="mover"), {})
        bus.subscribe(
            "/scan", lambda _, data: heard.append(len(data)), largest=largest_on("/scan#sensor_msgs.LaserScan")
        )
        sender, before = Sender(bus_url), private_bytes()
        for number in range(20):
            sender.send(all_but_the_last(number))
            await asyncio.sleep(0.005)  # at once they would be too much for the kernel's buffer
        bus.publish("/scan", bytes(90_000))
        await until(lambda: heard)
        assert private_bytes() - before < 8e6, "of 19"
        sender.close()
        await host.stop()
        await bus.close()

    asyncio.run(check())


def private_bytes() -> int:
    """Memory that this process has written to."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


@pytest.mark.usefixtures("lcm_library")
def test_a_bus_without_a_guard_says_so(bus_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(fd: int, channels: guard.Channels | None, *, of_this_machine: bool) -> None:
        raise OSError("packet filters need Linux")

    async def check() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        assert "no packet guard" in bus.notice
        heard: list[ModuleStatus] = []
        bus.subscribe(STATUS, lambda _, data: heard.append(decode(ModuleStatus, data)))
        host = ModuleHost(bus)
        await host.start(Mover(name="mover"), {})
        await until(lambda: heard)
        assert "no packet guard" in heard[0].health
        await host.stop()
        await bus.close()

    monkeypatch.setattr("dimos_streams.bus.lcm.guard.attach", unavailable)
    asyncio.run(check())


@pytest.mark.feature("A5")
@pytest.mark.parametrize("text", HOSTILE_JSON, ids=range(len(HOSTILE_JSON)))
def test_arguments_from_outside(text: str, settled_log: pytest.LogCaptureFixture) -> None:
    """A host answers each call with an open and a close, or skips what is no call; nothing is raised."""

    async def check() -> None:
        bus = create_bus("memq://")
        await bus.open()
        events: list[ToolStreamEvent] = []
        bus.subscribe(EVENTS, lambda _, data: events.append(decode(ToolStreamEvent, data)))
        host = ModuleHost(bus)
        await host.start(Sleeper(name="sleeper"), {})
        large = json.dumps({"seconds": "é" * MAX_ARGUMENTS})
        for call_id, arguments in (("first", text), ("large", large), ("last", "{}")):
            call = SkillCall(call_id=call_id, module="sleeper", skill="block", arguments_json=arguments)
            bus.publish(CALLS, encode(call))
        await until(lambda: any(event.call_id == "last" and event.type == "close" for event in events))
        for call_id in ("large", "last"):
            assert [event.type for event in events if event.call_id == call_id] == ["open", "close"]
        assert len([event for event in events if event.call_id == "first"]) in (0, 2)
        await host.stop()
        await bus.close()

    run_virtual(check())
    assert "Traceback" not in settled_log.text


@pytest.mark.virtual_time
@pytest.mark.parametrize("call_id", ["", "..", "../../etc", "a/b", "a\0", "a b", "é", "x" * 201])
async def test_an_id_that_no_url_can_hold_is_none(call_id: str) -> None:
    """Nobody could ask for its call over HTTP, or end it: no call begins, no event or heartbeat names one."""
    bus = create_bus("memq://")
    await bus.open()
    events: list[ToolStreamEvent] = []
    bus.subscribe(EVENTS, lambda _, data: events.append(decode(ToolStreamEvent, data)))
    statuses: list[ModuleStatus] = []
    directory = ModuleDirectory(bus)
    directory.listen(statuses.append)
    directory.start()
    host = ModuleHost(bus)
    await host.start(Sleeper(name="sleeper"), {})
    bus.publish(CALLS, encode(SkillCall(call_id=call_id, module="sleeper", skill="cancelled_calls")))
    bus.publish(CALLS, encode(SkillCall(call_id="last", module="sleeper", skill="cancelled_calls")))
    bus.publish(STATUS, encode(ModuleStatus(module="m", instance="1", call_ids=[call_id], last_seqs=[1])))
    await until(lambda: any(event.type == "close" for event in events))
    assert {event.call_id for event in events} == {"last"}
    assert {status.module for status in statuses} == {"sleeper"}
    assert directory.malformed == 1
    await host.stop()
    directory.stop()
    await bus.close()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#"},
        {"type": "nonsense"},
        {"properties": 5},
    ],
    ids=str,
)
def test_a_schema_from_outside_is_its_skills_problem(schema: dict[str, Any]) -> None:
    with pytest.raises(SkillError, match="the schema of skill 's' can't be used"):
        check_arguments(SkillInfo(name="s", description="", parameters=schema), {"a": "b"})


@pytest.mark.parametrize("pattern", ["(", "^(a+)+$"])
def test_a_regular_expression_from_outside_is_left_to_its_skill(pattern: str) -> None:
    info = SkillInfo(name="s", description="", parameters={"properties": {"a": {"pattern": pattern}}})
    check_arguments(info, {"a": "a" * 40 + "!"})


def test_a_log_line_is_one_short_line(settled_log: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        log = LimitedLog(logging.getLogger("outside"))
        for _ in range(1000):
            log.warning("skipped: %s", "x\n2026 ERROR forged" + "y" * 50_000)
        await asyncio.sleep(1.1)  # its period is a second
        log.warning("skipped: %s", "again")

    run_virtual(check())
    assert [len(record.getMessage()) < 600 for record in settled_log.records] == [True, True]
    assert "\n2026" not in settled_log.records[0].getMessage()
    assert settled_log.records[1].getMessage() == "skipped: again (and 999 more like it)"


def test_records_of_other_loggers_are_limited() -> None:
    async def check() -> list[bool]:
        records = LimitedRecords()
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, "Invalid request", (), None)
        passed = [records.filter(record) for _ in range(5)]
        await asyncio.sleep(1.1)  # their period is a second
        return [*passed, records.filter(record)]

    assert run_virtual(check()) == [True, False, False, False, False, True]


@pytest.mark.virtual_time
async def test_somebody_elses_word_about_a_module() -> None:
    """It shows, as long as it is new, instead of what the module said; it is no sign of life."""
    bus = create_bus("memq://")
    await bus.open()
    directory = ModuleDirectory(bus)
    directory.start()

    def report(**fields: object) -> None:
        bus.publish(STATUS, encode(ModuleStatus(module="m", **fields)))  # type: ignore[arg-type]

    report(health="hung: nobody knows it")
    report(instance="1", health="ok")
    await asyncio.sleep(1.2)  # it is alive for 1.5 s from its own word on, whoever says something of it then
    report(health="hung: for 1.2 s" + "." * 1000)
    await asyncio.sleep(0.4)
    (view,) = directory.modules()
    assert (view.alive, view.health[:15], len(view.health) <= 200) == (False, "hung: for 1.2 s", True)
    await asyncio.sleep(1.4)  # until that word is old, too
    assert directory.modules()[0].health == "gone: silent for 3.0 s"
    report(instance="1", health="ok")
    await until(lambda: directory.modules()[0].health == "ok")
    directory.stop()
    await bus.close()


def test_faults_reach_other_processes() -> None:
    injection = FaultInjection(Faults(loss=0.5), seed=7)
    assert pickle.loads(pickle.dumps(injection)) == injection
    assert isinstance(injection(create_bus("memq://"), "gate"), FaultBus)
