"""Texts that are cut to a number of characters."""

from __future__ import annotations

import pytest

from dimos_streams.common.readable.shortening import at_most, beginning, ends, shortened


def test_a_text_that_has_room_stays_as_it_is() -> None:
    for text in ("", "abc", "ab😀"):
        assert beginning(text, 3) == shortened(text, 3) == at_most(text, 3) == ends(text, 3) == text


def test_the_mark_stands_behind_what_is_shown_or_is_counted_with_it() -> None:
    assert beginning("abcdefgh", 6) == "abcdef…"
    assert beginning("abcdefgh", 6, " and more") == "abcdef and more"
    assert shortened("abcdefgh", 6) == "abc..."
    assert shortened("abcdefgh", 6, "…") == "abcde…"


def test_beginning_and_end_are_kept_of_what_says_at_its_end_what_it_is() -> None:
    assert ends("abcdefgh", 4) == "ab\n… (8 characters) …\ngh"


def test_characters_stay_whole() -> None:
    for count in range(4, 12):
        for cut in (beginning("😀" * 12, count), shortened("😀" * 12, count), at_most("😀" * 12, count)):
            assert set(cut.rstrip(".…")) == {"😀"}
            assert cut.encode().decode() == cut


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nobody publishes /scan", "nobody publishes /scan"),
        ("nobody publishes /odometry", "nobody publishes …"),
        ("x" * 23, "x" * 21 + "…"),
        ("a " + "x" * 23, "a " + "x" * 19 + "…"),
    ],
)
def test_a_text_is_cut_between_words_where_there_are_any(text: str, shown: str) -> None:
    assert at_most(text, 22) == shown
