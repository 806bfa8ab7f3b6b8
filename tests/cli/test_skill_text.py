"""Skills as people read them: all that is known of one is told, and a table has room for the beginnings of many."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.cli.terminal.skill_text import skill_lines, skill_rows
from dimos_streams.tool_stream.gateway import OfferedSkill

OTHERWISE: dict[str, Any] = {
    "name": "t",
    "description": "It does.\nIt does more.",
    "parameters": {"properties": {"x": {"type": "number"}}},
    "resources": ("arm",),
    "tags": ("safe",),
    "on_duplicate": "confirm",
    "duplicate_scope": "arguments",
    "audience": "operator",
    "motion": True,
    "concurrent": True,
    "read_only": True,
    "reversible": False,
    "undo": "back",
    "frame": "map",
    "approval": "ask",
    "polling": True,
    "protected": True,
    "on_loss": "continue",
    "module": "n",
    "available": False,
    "agent": True,
    "robot": "r1",
}


def offered(**traits: Any) -> OfferedSkill:
    return OfferedSkill(
        **{"name": "s", "description": "", "parameters": {}, "module": "m", "available": True, **traits}
    )


@pytest.mark.parametrize("trait", OfferedSkill.model_fields)
def test_whatever_a_skill_states_is_told(trait: str) -> None:
    base = {"motion": True} if trait == "frame" else {}
    assert skill_lines(offered(**base)) != skill_lines(offered(**base, **{trait: OTHERWISE[trait]}))


def test_arguments_are_told_with_their_parts_and_limits() -> None:
    step = {"properties": {"x": {"type": "number", "minimum": 0, "maximum": 2}}, "required": ["x"], "title": "Step"}
    properties = {
        "steps": {"type": "array", "items": step, "minItems": 1, "description": "Where\nto go."},
        "then": {"anyOf": [step, {"type": "null"}], "default": None},
        "how": {"enum": ["fast", "slow"], "default": "slow"},
        "share": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]},
    }
    lines = skill_lines(offered(parameters={"properties": properties, "required": ["steps"]}))
    table = lines[lines.index("") + 1 :]
    assert [" ".join(line.split()) for line in table[: table.index("")]] == [
        "ARGUMENT TYPE DEFAULT",
        "steps array of Step (at least 1 item) required Where to go.",
        "steps[].x number (at least 0, at most 2) required",
        "then Step | null null",
        "then.x number (at least 0, at most 2) required",
        'how "fast" | "slow" "slow"',
        "share number (more than 0) | string",
    ]


def test_a_skill_without_arguments_says_so() -> None:
    assert "  no arguments" in skill_lines(offered())


def test_descriptions_are_shortened_to_the_terminal() -> None:
    skills = [offered(description=f"{'word ' * 50}\nMore"), offered(name="long_name", description="Short.")]
    for width, room in ((80, 30), (100, 47), (200, 70)):
        long, short = (row[6] for row in skill_rows(skills, width))
        assert room - 5 < len(long) <= room
        assert (long[-1], short) == ("…", "Short.")
