"""What modules say of themselves, and why skills end calls, brings no secret onto the bus, which recorders hear."""

from __future__ import annotations

import asyncio
import json

import pytest

from dimos_streams.common.secrets import know
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skill import SkillInfo, skill
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.calling.withdrawal import named_reason
from dimos_streams.tool_stream.liveness.skill_fragments import described, skills_in
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


@pytest.mark.parametrize("word", ["operator", "string", "follow", "robot1", "distance_m", "required"])
def test_a_skill_is_found_and_called_though_a_secret_is_a_word_of_it(word: str) -> None:
    schema = {"type": "object", "properties": {"distance_m": {"type": "string", "title": SECRET}}}
    parameters = {**schema, "required": ["distance_m"], "description": f"The {SECRET}."}
    traits = {"name": "follow", "audience": "operator", "undo": "follow", "frame": "robot1/odom"}
    info = SkillInfo.model_validate({**traits, "description": SECRET, "parameters": parameters})
    know(word)
    (text,) = described("robot1/follow", [info])
    (read,) = skills_in(text, pytest.fail)
    assert read.model_dump(include=set(traits)) == traits
    assert read.parameters["required"] == ["distance_m"]
    assert read.parameters["properties"] == {"distance_m": {"type": "string", "title": "[redacted]"}}
    assert "p1ant3d" not in text


@pytest.mark.parametrize("word", ["default", "examples"])
def test_values_that_look_like_a_schema_have_no_secret_either(word: str) -> None:
    part = {"type": "object", word: [{"type": SECRET, "enum": [SECRET]}]}
    info = SkillInfo(name="follow", description="", parameters={"properties": {"by": part}})
    (text,) = described("follow", [info])
    assert "p1ant3d" not in text
    assert '"type":"object"' in text


@pytest.mark.parametrize("name", ["default", "examples", "type", "required"])
def test_a_parameter_may_be_called_like_a_keyword_of_schemas(name: str) -> None:
    know("string")
    part = {"type": "string", "enum": ["a"]}
    info = SkillInfo(name="follow", description="", parameters={"properties": {name: part}})
    (text,) = described("m", [info])
    (read,) = skills_in(text, pytest.fail)
    assert read.parameters == {"properties": {name: part}}


@pytest.mark.virtual_time
async def test_a_gate_is_known_though_a_secret_is_a_word_of_what_it_says() -> None:
    for word in ("velocity", "robot1", "dimos_streams"):
        know(word)
    async with ModuleHarness(VelocityGate, unwired=("scan",)) as harness:
        harness.feed("hold", Hold(hold=True, source="robot1/agent", valid_s=1.0, reason=f"for {SECRET}"))
        await asyncio.sleep(0.2)
        state = json.loads(harness.module.state_json)["velocity_gate"]
        assert (state["holds"], state["channel"]) == (["robot1/agent"], "/hold#dimos_streams.Hold")


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
