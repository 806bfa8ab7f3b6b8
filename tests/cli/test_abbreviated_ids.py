"""Ids of which the beginning is enough: which ones it means."""

from __future__ import annotations

import pytest

from dimos_streams.cli.system.abbreviated_ids import find_abbreviated


@pytest.mark.parametrize(
    ("start", "meant"),
    [
        ("ab", ["ab"]),
        ("a", ["ab", "abc", "axe"]),
        ("ax", ["axe"]),
        ("b", ["be", "bee"]),
        ("c", []),
        ("", []),
    ],
    ids=["the whole id, not those that are longer", "some", "one", "none to prefer", "none", "nothing"],
)
def test_an_id_means_the_one_that_is_called_so_or_those_that_begin_so(start: str, meant: list[str]) -> None:
    ids = ["ab", "abc", "axe", "be", "bee"]
    assert find_abbreviated(start, ids, str, prefer=lambda id: id.startswith("a")) == meant


def test_of_those_that_begin_so_the_ones_to_prefer_are_meant() -> None:
    assert find_abbreviated("a", ["ab", "abc", "axe"], str, prefer=lambda id: len(id) == 3) == ["abc", "axe"]
    found = find_abbreviated("ab", ["ab", "abc"], str, prefer=lambda id: len(id) == 3)
    assert found == ["ab"], "but not of two whole ids"
