"""Tables in docs that repeat what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from dimos_streams.skill import SkillPolicy

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_map_of_the_agent_has_every_room_and_every_file_beside_them() -> None:
    below = (DOCS / "architecture.md").read_text().split("| `dimos_streams/agent/` | |\n")[1]
    table, beside = below.split("\n\n")[:2]
    agent = ROOT / "dimos_streams" / "agent"
    rooms = {path.parent.name for path in agent.glob("*/__init__.py")}
    assert sorted(re.findall(r"^\| `(\w+)/`", table, re.MULTILINE)) == sorted(rooms)
    files = {path.name for path in agent.glob("*.py")} - {"__init__.py"}
    assert sorted(re.findall(r"`(\w+\.py)`", beside)) == sorted(files)


def test_the_declarations_of_skills() -> None:
    section = (DOCS / "writing-skills.md").read_text().split("## What a skill states of itself\n")[1]
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S.*?) \|", section, re.MULTILINE))
    fields = {name: field.default for name, field in SkillPolicy.model_fields.items()}
    assert list(rows) == list(fields)
    for name, default in fields.items():
        if name == "resources" or default in ("", None):
            assert "`" not in rows[name], name
        else:
            assert rows[name] == f"`{default}`", name
