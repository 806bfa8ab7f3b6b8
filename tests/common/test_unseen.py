"""What nobody sees counts for nothing where texts are compared, and is written out where they are shown."""

from __future__ import annotations

import pytest

from dimos_streams.common.names import is_key, is_parameter
from dimos_streams.common.printable import printable
from dimos_streams.common.readable.comparable_text import comparable
from dimos_streams.common.readable.unseen import is_printable

# The ends of each range of Default_Ignorable_Code_Point in DerivedCoreProperties.txt.
IGNORABLE = (
    *"\u00ad\u034f\u061c\u17b4\u17b5\u180b\u180f\u200b\u200f\u202a\u202e\u2060\u2065\u206f\ufe00\ufe0f\ufeff",
    *"\ufff0\ufff8\U0001bca0\U0001bca3\U0001d173\U0001d17a\U000e0000\U000e0041\U000e0100\U000e01ef\U000e0fff",
)
BLANK = "\u115f\u1160\u3164\uffa0\u2800\U0001d159"


@pytest.mark.parametrize("unseen", [*IGNORABLE, "\x07", "\ufff9", "\ufffb", "\ufffc"], ids=ascii)
def test_what_is_drawn_as_nothing_makes_no_text_another_and_is_written_out(unseen: str) -> None:
    assert comparable(f"{unseen}kn{unseen}ife{unseen}") == "knife"
    assert printable(f"kn{unseen}ife") == f"kn{unseen.encode('unicode_escape').decode()}ife"
    assert not is_key(f"kn{unseen}ife")
    assert not is_parameter(f"kn{unseen}ife")


@pytest.mark.parametrize("blank", [*BLANK, "\u00a0", "\u2003", "\u3000"], ids=ascii)
def test_what_is_drawn_as_a_blank_is_one_and_is_written_out(blank: str) -> None:
    assert comparable(f"{blank}long{blank}knife{blank}") == "long knife"
    assert printable(f"long{blank}knife") == f"long{blank.encode('unicode_escape').decode()}knife"


@pytest.mark.parametrize(
    "text",
    ["❤\ufe0f", "1\ufe0f\u20e3", "\u2139\ufe0f note", "👨\u200d👩\u200d👧", "👩🏽\u200d🚒", "🏴\u200d☠\ufe0f"],
    ids=ascii,
)
def test_emoji_stay_readable(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bo\ufe0fmb", r"bo\ufe0fmb"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f\\ufe0f"),
        ("❤\ufe0e", r"❤\ufe0e"),
        ("\u2800\ufe0f", r"\u2800\ufe0f"),
        ("1\ufe0f", r"1\ufe0f"),
        ("bo\u200dmb", r"bo\u200dmb"),
        ("❤\u200d", r"❤\u200d"),
        ("\u200d❤", r"\u200d❤"),
        ("a\ufe0f\u200d❤", r"a\ufe0f\u200d❤"),
        ("❤\u200d\u200d❤", r"❤\u200d\u200d❤"),
    ],
    ids=ascii,
)
def test_what_makes_no_emoji_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert not is_printable(text)
