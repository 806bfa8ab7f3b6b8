"""The robot and the skill that are meant by a name, at a fleet's hub."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from dimos_streams.common.json.writing import json_text
from dimos_streams.common.names import tool_name
from dimos_streams.errors import UnknownSkillError
from dimos_streams.hub.fleet_view import FleetView
from dimos_streams.hub.storage.rows import RobotRow
from tests.agent.policies.gate_inputs import offered

LONG = "stop_to_count_what_lies_on_the_shelves_of_this_aisle"


def _row(robot: str, *skills: str) -> RobotRow:
    known = [offered(skill).model_dump(mode="json") for skill in skills]
    return RobotRow(
        name=robot,
        added=0,
        heard=None,
        connected=True,
        doubled=False,
        clock_us=None,
        version="",
        report="",
        skills=json_text(known),
        acknowledged=None,
    )


async def _meant(view: FleetView, name: str, *, is_own: bool = False) -> tuple[str, str]:
    ((robot, skill),) = await view.meant(name, is_own=is_own)
    return robot.name, skill


@pytest.mark.feature("H2")
def test_a_tool_s_name_means_its_skill_also_where_another_robot_s_is_called_so() -> None:
    tool = tool_name(f"arm_of_north_hall_{LONG}")
    mimic = tool.removeprefix("arm_")
    storage = Mock()
    storage.robots.all.return_value = [_row("arm", mimic), _row("arm_of_north_hall", LONG)]

    async def look(view: FleetView) -> None:
        for name in (tool, f"arm_of_north_hall_{LONG}", f"arm_of_north_hall/{LONG}"):
            assert await _meant(view, name) == ("arm_of_north_hall", LONG)
        assert await _meant(view, tool_name(tool)) == ("arm", mimic)
        assert await _meant(view, tool, is_own=True) == ("arm", mimic), "a model's call has its skill's own name"
        with pytest.raises(UnknownSkillError):
            await view.meant(tool_name(tool), is_own=True)

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(look(FleetView(storage, pool)))
