"""What tests give a run when it is wrong, and what pytest shows of it."""

from __future__ import annotations

import enum
import json
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from dimos_streams.blueprint import blueprint, module
from dimos_streams.bridge.module import Bridge
from dimos_streams.errors import SkillError, UnknownSkillError, UserError
from dimos_streams.module import Module
from dimos_streams.skill import skill
from dimos_streams.testing import MissionRun
from dimos_streams.testing.author_errors import shorten

A_BLUEPRINT = "a run takes a Blueprint, the name of a stock one, a file's path as text, or 'package.module:ATTRIBUTE'"
BY_NAMES = "settings are values by their names, as {'follow.distance_m': 1.2}"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seed": "x"}, "the seed of the run is 'x': it must be a whole number"),
        ({"seed": 1.5}, "the seed of the run is 1.5: it must be a whole number"),
        ({"seed": None}, "the seed of the run is None: it must be a whole number"),
        ({"blueprint": 3}, f"{A_BLUEPRINT}, and not 3"),
        ({"settings": ["agent.model"]}, f"{BY_NAMES}, and not ['agent.model']"),
        ({"settings": {3: "x"}}, "3 must name a module and something of it, as in 'follow.distance_m'"),
        (
            {"settings": {"robot.camera_width": object}},
            "setting 'robot.camera_width' is the class object: settings are plain data: texts, numbers, lists, dicts,"
            " models",
        ),
        (
            {"faults": "loss"},
            "the faults of the run are 'loss': they must be a function that makes a bus of a bus, as"
            " FaultInjection(Faults(loss=0.1)) is",
        ),
    ],
)
def test_a_mistake_is_told_with_what_is_valid(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        MissionRun(**{"blueprint": "base-robot", "record": tmp_path / "run.lcmlog", **wrong})
    assert str(error.value) == said


@pytest.mark.virtual_time
async def test_a_skill_that_no_module_has_is_told_without_a_bridge_as_with_one(tmp_path: Path) -> None:
    async with MissionRun("robot-only", record=tmp_path / "run.lcmlog") as run:
        with pytest.raises(UnknownSkillError, match="no skill is called 'moove'; did you mean 'move'"):
            await run.call("moove")


class Height(enum.Enum):
    LOW = 0.5


class Spot(BaseModel):
    model_config = ConfigDict(extra="forbid")

    height: Height


class Camera(Module):
    """Looks at something."""

    @skill
    async def look(self, spot: Spot, after: timedelta = timedelta(0)) -> str:
        """Look."""
        return f"{spot.height} after {after.total_seconds():g} s"


@pytest.mark.virtual_time
async def test_arguments_of_a_run_may_be_what_a_skill_declares(tmp_path: Path) -> None:
    filmed = blueprint("filmed", module(Bridge, http=False), module(Camera))
    async with MissionRun(filmed, record=tmp_path / "run.lcmlog") as run:
        call = await run.call("look", spot=Spot(height=Height.LOW), after=timedelta(seconds=2))
        assert await call.result() == "Height.LOW after 2 s"
        with pytest.raises(SkillError, match="not JSON: Unable to serialize unknown type: <class 'object'>"):
            await run.call("look", spot=object())


def test_a_mistake_is_shown_at_the_line_that_made_it(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        MissionRun("base-robo", record=tmp_path / "run.lcmlog")
    shorten(error.value)
    assert [frame.filename for frame in traceback.extract_tb(error.value.__traceback__)] == [__file__]


def test_what_is_no_mistake_of_its_author_is_shown_whole() -> None:
    with pytest.raises(ValueError, match="Expecting value") as error:
        json.loads("x")
    before = traceback.extract_tb(error.value.__traceback__)
    shorten(error.value)
    assert traceback.extract_tb(error.value.__traceback__) == before
