"""docs/features.md says what the marks say."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| ([A-K]\d+) \| (.+) \| (yes|part|no) \| (.*)\|$", re.MULTILINE)
_MARK = re.compile(r"mark\.feature\(([^)]*)\)")


def marked() -> dict[str, list[str]]:
    """The files whose tests carry each id."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for mark in _MARK.findall(path.read_text()):
            for feature in re.findall(r'"([A-K]\d+)"', mark):
                found.setdefault(feature, []).append(path.name)
    return found


def test_every_row_is_as_the_tests_show() -> None:
    rows = {row[0]: row for row in _ROW.findall((ROOT / "docs" / "features.md").read_text())}
    assert len(rows) == 71
    shown = marked()
    assert set(shown) <= set(rows)
    for feature, _, holds, remark in rows.values():
        assert (holds == "yes") == (feature in shown), (
            f"{feature}: the page says {holds}, marks: {shown.get(feature)}"
        )
        assert holds != "part" or remark.strip(), f"{feature} holds in part, but which?"
