"""docs/robots.md says of the stock skills what they say themselves."""

from __future__ import annotations

import asyncio
import re
from importlib import import_module
from pathlib import Path

import pytest

from dimos_streams.agent.module import Agent
from dimos_streams.blueprint import blueprint, module
from dimos_streams.blueprint.check import check
from dimos_streams.messages.registry import find
from dimos_streams.module import Module
from dimos_streams.operator.holding import RELEASES, HoldTable
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.look_out_for import LookOut
from dimos_streams.skills.observe import Observe
from dimos_streams.skills.patrol import Patrol
from dimos_streams.testing import ModuleHarness
from tests.docs.test_documents import blocks

_PATH = Path(__file__).parents[2] / "docs" / "robots.md"
PAGE = _PATH.read_text()
_CONFIGS: dict[type[Module], dict[str, object]] = {
    Drive: {},
    FollowPerson: {},
    LookOut: {},
    Observe: {},
    Patrol: {"waypoints": [[1.0, 0.0]]},
    VelocityGate: {},
}


def table() -> dict[str, list[str]]:
    """The cells behind the topic, of each topic that skills need."""
    part = PAGE.partition("## What the skills need\n")[2].partition("And it takes")[0]
    rows = (line.strip("|").split(" | ") for line in part.splitlines() if line.startswith("| `"))
    return {row[0].strip(" `"): row[1:] for row in rows}


@pytest.mark.feature("K3")
def test_each_topic_is_said_to_come_as_often_as_the_skills_need_it() -> None:
    shortest: dict[str, float] = {}
    for cls, settings in _CONFIGS.items():
        for name, gap_s in cls.longest_gaps(cls.config_type().model_validate(settings)).items():
            assert cls.streams()[name].direction == "in"
            shortest[name] = min(gap_s, shortest.get(name, gap_s))
    said = {topic: re.match(r"([\d.]+) s", cells[-1].strip()) for topic, cells in table().items()}
    assert {topic: float(match[1]) for topic, match in said.items() if match} == shortest


def test_each_input_of_the_stock_skills_is_there_with_its_types() -> None:
    own = {"hold", "skill_vel", "teleop_vel", "wanted_descriptions"}
    inputs = [spec for cls in _CONFIGS for spec in cls.streams().values() if spec.direction == "in"]
    for spec in inputs:
        if spec.name not in own:
            assert all(cls.msg_name in table()[spec.name][0] for cls in spec.messages), spec.name
    for cells in table().values():
        assert all(find(name) for name in re.findall(r"`(\w+\.\w+)`", cells[0]))


@pytest.mark.feature("K3")
@pytest.mark.virtual_time
async def test_the_emergency_button_holds_beside_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "button.py").write_text(next(block.text for block in blocks(_PATH) if block.name == "button.py"))
    monkeypatch.syspath_prepend(str(tmp_path))
    button = import_module("button").Button
    assert check(blueprint("robot", module(Agent, name="agent"), module(button, name="button"))) == []
    async with ModuleHarness(button) as harness:
        heard = HoldTable()
        sent = 0
        for pressed, held in ((False, False), (True, True), (False, False)):
            harness.module.pressed = pressed
            await asyncio.sleep(2)
            for message in harness.sent("hold")[sent:]:
                heard.update(message, 0.0)
            sent = len(harness.sent("hold"))
            assert heard.held(0.0) is held
        assert [message.hold for message in harness.sent("hold")].count(False) == RELEASES
