"""The heart of one process beats for each of its modules, whatever is wrong with one of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dimos_streams.bus.memory import MemoryBus
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.module import Module
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.tool_stream.hosting.heart import Heart
from dimos_streams.tool_stream.hosting.loss import LossWatch
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.helpers import until

pytestmark = pytest.mark.virtual_time


class Camera(Module):
    pass


@contextlib.asynccontextmanager
async def two_hosted() -> AsyncIterator[tuple[ModuleHost, Module, list[str]]]:
    """A host of two cameras, the first of them, and the names in the heartbeats that come."""
    bus, heard = MemoryBus(), list[str]()
    await bus.open()
    bus.subscribe(STATUS, lambda _, data: heard.append(decode(ModuleStatus, data).module))
    host, broken = ModuleHost(bus), Camera(name="broken")
    for module in (broken, Camera(name="sound")):
        await host.start(module, {})
    try:
        yield host, broken, heard
    finally:
        await host.stop()
        await bus.close()


async def test_a_module_whose_heartbeat_can_not_be_made_silences_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with two_hosted() as (host, broken, heard):
        broken.live_values = {"speed": object()}
        with caplog.at_level(logging.ERROR):
            await until(lambda: "a heartbeat of module 'broken' could not be sent" in caplog.text)
        heard.clear()
        await until(lambda: heard.count("sound") >= 3)
        assert "broken" not in heard
        broken.live_values = {}
        await until(lambda: "broken" in heard)
        broken.live_values = {"speed": object()}
        await host.stop()
        assert host.modules == [], "it keeps nobody from stopping, either"


async def test_calls_that_can_not_be_looked_after_silence_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def look(self: LossWatch, calls: Any) -> None:
        if self._module.name == "broken":
            raise ValueError("a defect")
        looked.append(self._module.name)

    looked: list[str] = []
    monkeypatch.setattr(LossWatch, "look", look)
    async with two_hosted() as (_, _, heard):
        with caplog.at_level(logging.ERROR):
            await until(lambda: len(looked) >= 3 and heard.count("broken") >= 3)
    assert "the calls of module 'broken' could not be looked after" in caplog.text


async def test_a_heart_that_ends_by_a_defect_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Heart) -> None:
        raise ValueError("a defect")

    async with two_hosted():
        monkeypatch.setattr(Heart, "_log_rivals", fail)
        with caplog.at_level(logging.ERROR):
            await until(lambda: "the task 'heartbeat' has a defect and ends" in caplog.text)


async def test_a_health_that_is_no_text_is_refused_where_it_is_set() -> None:
    camera = Camera(name="camera")
    refused = r"^the health of module 'camera' can't be OSError\('it is gone'\): set a text, as in str\(…\)$"
    with pytest.raises(TypeError, match=refused):
        camera.health = OSError("it is gone")  # type: ignore[assignment]
    assert camera.health == "ok"


async def test_an_empty_health_says_that_nothing_is_wrong() -> None:
    camera = Camera(name="camera")
    camera.health = "it is dark"
    camera.health = ""
    assert camera.health == "ok"


async def test_each_of_several_rivals_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    bus = MemoryBus()
    await bus.open()
    hosts = [ModuleHost(bus) for _ in range(3)]
    for host in hosts:
        await host.start(Camera(name="camera"), {})
        await asyncio.sleep(0.1)
    await asyncio.sleep(20.0)
    for host in hosts:
        await host.stop()
    await bus.close()
    said = [record.getMessage() for record in caplog.records if "runs beside another" in record.getMessage()]
    assert len(said) == 6, "each of the three says it of two"
