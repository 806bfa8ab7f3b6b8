"""What a robot reports has room in a report."""

from __future__ import annotations

import pytest

from dimos_streams.bridge.fleet.reporter import with_skills
from dimos_streams.fleet.protocol import MAX_REPORT_BYTES, MAX_TEXT
from dimos_streams.fleet.reports import RobotReport
from dimos_streams.tool_stream.gateway import OfferedSkill


@pytest.mark.feature("H2")
def test_skills_fill_the_room_that_the_rest_of_a_report_leaves_and_no_more() -> None:
    report = RobotReport(
        version="1",
        sent_utime=1,
        journal="journal-1",
        last_offset=1,
        status="ok",
        notes=("\x01" * MAX_TEXT,) * 20,
        robots=tuple(f"{number}" + "\U0001f916" * 190 for number in range(30)),
    )
    skill = OfferedSkill(
        name="move", description="d" * 500, parameters={"type": "object"}, module="m", available=True
    )
    filled = with_skills(report, [skill] * 900)
    assert filled.skills is not None
    assert 0 < len(filled.skills) < 900
    assert filled.skills_left_out == 900 - len(filled.skills)
    size, each = len(filled.model_dump_json().encode()), len(skill.model_dump_json().encode()) + 1
    assert size <= MAX_REPORT_BYTES < size + each + 1
