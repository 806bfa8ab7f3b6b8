"""The pages name every problem that a bridge and a hub answer with, and its status."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from dimos_streams.hub.http import hub_kinds
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problem_kinds import ProblemKind

DOCS = Path(__file__).parents[2] / "docs"
_ROW = re.compile(r"^\| (any|\d+) \| (`[^|]+`) \| [^|]*\|$", re.MULTILINE)


def named(page: str) -> list[tuple[str, str]]:
    """The statuses and names in a page's table of problems."""
    _, found, rest = (DOCS / page).read_text().partition("\n| status | names | |\n")
    assert found, f"docs/{page} has no table of problems"
    table = rest.partition("\n\n")[0]
    return sorted((status, name) for status, names in _ROW.findall(table) for name in re.findall(r"`(.+?)`", names))


def answered(kinds: Iterable[ProblemKind]) -> list[tuple[str, str]]:
    """The same of kinds of problems."""
    return sorted(("any" if kind is problem_kinds.HTTP_ERROR else str(kind.status), kind.name) for kind in kinds)


def test_each_problem_of_a_bridge_is_in_its_table() -> None:
    assert named("http.md") == answered(problem_kinds.KINDS)


def test_each_problem_of_a_hub_is_in_its_table() -> None:
    assert named("fleet.md") == answered(set(hub_kinds.KINDS) - set(problem_kinds.KINDS))
