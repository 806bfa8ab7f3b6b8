"""The names of the files of a mission record: a file for each mission, and a general one for each agent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = "missions"
"""The folder of all of them, in a run's directory."""
GENERAL = "general"
"""Stands for a mission in the name of the file with the events that belong to none."""
HIDDEN = ".ended"
"""The ending of a file that lacks the line of the mission's end."""
OLD = ".old"
"""The ending of the general file before the present one."""
OUTDATED = ".outdated"
"""The ending of the general file while it lacks what an operator has set."""
NEXT = ".next"
"""The ending of a general file that is not whole yet."""


def file_name(agent: str, mission: str) -> str:
    """The name of the file with the events of an agent's mission; ``GENERAL`` is that of events of none."""
    return f"{_slug(agent)}.{_slug(mission)}.jsonl"


def mission_files(directory: Path, agent: str | None) -> list[Path]:
    """The files of missions in a directory, by name, of one agent or, for None, of all. General files are none."""
    found = files_with(directory, agent, ".jsonl")
    return sorted(path for path in found if not path.name.endswith(f".{GENERAL}.jsonl"))


def files_with(directory: Path, agent: str | None, ending: str) -> Iterable[Path]:
    """The files in a directory with that ending, of one agent or, for None, of all."""
    return directory.glob(f"*{ending}" if agent is None else f"{_slug(agent)}.*{ending}")


def _slug(name: str) -> str:
    """The part of a file's name that stands for a name; different names never become the same."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:80]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
