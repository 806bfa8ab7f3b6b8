"""A table that keeps its newest entries."""

from __future__ import annotations

from dimos_streams.common.newest_entries import NewestEntries


def test_one_more_takes_the_place_of_the_oldest_and_what_is_set_again_is_the_newest() -> None:
    table = NewestEntries[str, int](3)
    for number, key in enumerate("abcad"):
        table[key] = number
    assert list(table.items()) == [("c", 2), ("a", 3), ("d", 4)]
    table.setdefault("c", 9)
    assert list(table.items()) == [("c", 2), ("a", 3), ("d", 4)], "what is only asked for keeps its place"
    assert table.setdefault("e", 5) == 5
    table.update(f=6, g=7)
    assert list(table) == ["e", "f", "g"]


def test_a_copy_is_as_large_and_another_table() -> None:
    table = NewestEntries[str, int](2)
    table.update(a=1, b=2)
    copied = table.copy()
    copied["c"] = 3
    assert (list(table), list(copied)) == (["a", "b"], ["b", "c"])
