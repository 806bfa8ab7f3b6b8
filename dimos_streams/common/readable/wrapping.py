"""Wrapping by the cells of a terminal: a character of East Asia, or an emoji, takes two of them.

A text that is taken for narrower than it is goes on at the left edge, where lines of the command's own begin.
"""

from __future__ import annotations

import textwrap
import unicodedata

_SECOND_CELL = "\0"
"""Stands behind a wide character while a text is wrapped; printable texts have none."""


def cells(text: str) -> int:
    """Return the number of cells that a printable text takes at most: marks above letters count, too."""
    return len(text) if text.isascii() else len(_doubled(text))


def padded(text: str, width: int) -> str:
    """Return a text with blanks behind it, up to ``width`` cells."""
    return text + " " * (width - cells(text))


def wrapped(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    """Return a text in lines of ``width`` cells, wrapped between words, each behind its beginning. Long words such as
    paths are left whole."""
    lines = textwrap.wrap(
        text if text.isascii() else _doubled(text),
        width,
        initial_indent=first if first.isascii() else _doubled(first),
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_SECOND_CELL, "") for line in lines]


def _doubled(text: str) -> str:
    return "".join(char + _SECOND_CELL if unicodedata.east_asian_width(char) in "WF" else char for char in text)
