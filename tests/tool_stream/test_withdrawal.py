"""The end of a call is asked for until a lossy bus has let it through, by each who may ask for it."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.bus import Bus, create_bus
from dimos_streams.cli.running.run_link import bus_link
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import SkillCancel
from dimos_streams.tool_stream.calling.withdrawal import request_end
from dimos_streams.tool_stream.protocol.channels import CANCELS
from tests.tool_stream.hosting.test_client import client_on_a_bus


class FirstLost:
    """The messages of a bus on the channel of cancels, of which each call's first one gets lost."""

    def __init__(self, bus: Bus) -> None:
        self.heard: list[str] = []
        self._lost: set[str] = set()
        bus.subscribe(CANCELS, self._take)

    def _take(self, channel: str, data: bytes) -> None:
        call_id = decode(SkillCancel, data, channel=channel).call_id
        if call_id in self._lost:
            self.heard.append(call_id)
        self._lost.add(call_id)


@pytest.mark.virtual_time
async def test_a_skill_that_cancels_a_call_says_so_until_it_is_heard() -> None:
    async with client_on_a_bus() as (bus, client):
        lossy = FirstLost(bus)
        await client.cancel("call", "enough")
        await asyncio.sleep(1.0)
        assert "call" in lossy.heard


@pytest.mark.virtual_time
async def test_a_command_without_a_bridge_that_cancels_a_call_says_so_until_it_is_heard() -> None:
    bus = create_bus("memq://")
    await bus.open()
    lossy = FirstLost(bus)
    async with bus_link(bus, lambda line: None) as link:
        await link.cancel("call", "enough")
        await asyncio.sleep(1.0)
    assert "call" in lossy.heard
    await bus.close()


@pytest.mark.virtual_time
async def test_a_bus_that_was_closed_meanwhile_hears_no_more() -> None:
    bus = create_bus("memq://")
    await bus.open()
    request_end(bus, "call", "enough")
    await bus.close()
    await asyncio.sleep(1.0)
    request_end(bus, "call", "enough")
    await asyncio.sleep(1.0)
