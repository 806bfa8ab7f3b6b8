"""Examples of properties: those of one run of the tests are those of each."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def examples() -> list[int]:
    found = []

    @settings(max_examples=300)
    @given(st.integers())
    def look(number: int) -> None:
        found.append(number)

    look()
    return found


def test_what_was_imported_before_changes_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = examples()
    late = ModuleType("late")
    late.__file__ = str(tmp_path / "late.py")
    Path(late.__file__).write_text("\n".join(map(str, range(1000, 1300))))
    monkeypatch.setitem(sys.modules, "late", late)
    assert examples() == first
    assert len(set(first)) > 50
