"""What modules say of themselves, and why skills end calls, brings no secret onto the bus, which recorders hear."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.common.secrets import know
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import skill
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.calling.withdrawal import named_reason
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON
from tests.tool_stream.hosting.test_client import client_on_a_bus

SECRET = "sk-p1ant3d/key+8"


@pytest.fixture(autouse=True)
def _known() -> None:
    know(SECRET)


class CameraConfig(ModuleConfig):
    """Nothing to set."""


class Camera(Module):
    """A skill with a secret in its signature."""

    config: CameraConfig

    @skill
    async def look(self, url: str = f"http://cam/{SECRET}") -> str:
        """Look."""
        return url


@pytest.mark.virtual_time
async def test_heartbeats_of_a_module_have_no_secret() -> None:
    said: list[bytes] = []
    async with ModuleHarness(Camera) as harness:
        harness.bus.subscribe_all(lambda _, data: said.append(data))
        harness.module.report_state({"camera": {"lost": f"http://cam/{SECRET}"}})
        assert harness.module.state_json == '{"camera":{"lost":"http://cam/[redacted]"}}'
        harness.module.offer_anew()
        await asyncio.sleep(1.0)
    assert any(b"http://cam/[redacted]" in data and b'"look"' in data for data in said)
    assert not any(b"p1ant3d" in data for data in said)


@pytest.mark.virtual_time
async def test_a_skill_that_ends_a_call_says_no_secret() -> None:
    said: list[bytes] = []
    async with client_on_a_bus() as (bus, client):
        bus.subscribe_all(lambda _, data: said.append(data))
        await client.cancel("call", f"no answer from http://cam/{SECRET}")
        await asyncio.sleep(0)
    assert any(b"http://cam/[redacted]" in data for data in said)
    assert not any(b"p1ant3d" in data for data in said)


def test_a_reason_that_is_cut_ends_in_no_half_of_a_secret() -> None:
    for shift in range(len(SECRET)):
        assert "sk-p1" not in named_reason("x" * (MAX_REASON - 20 - shift) + SECRET, "agent")
