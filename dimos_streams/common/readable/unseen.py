"""The characters that nobody sees, in one table: texts are compared without them, and shown with escapes for them.

The operators' page has the same table, in ``dashboard/page/texts.js``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

NOTHING = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufff8"
    "\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that are drawn as nothing, as in brackets of a regular expression: those with the property
Default_Ignorable_Code_Point, assigned or not, but the fillers of Hangul (DerivedCoreProperties.txt of Unicode 17.0;
the same since 14.0), and the object replacement character."""
BLANK = "\u115f\u1160\u3164\uffa0\u2800\U00013441\U00013442\U00016fe4\U0001d159"
"""Characters that are drawn as a blank, and are none to Unicode: fillers, and signs that consist of nothing."""
SYMBOLS = "‼⁉\N{INFORMATION SOURCE}↔⤴⤵◻-◾〰〽"
"""Characters that may be emoji, as in brackets, besides those of the category "other symbols" (So)."""

_NOTHING = re.compile(f"[{NOTHING}]")
_BLANK = re.compile(f"[{BLANK}]")
_UNSEEN = re.compile(f"[{NOTHING}{BLANK}]")
_SYMBOL = re.compile(f"[{SYMBOLS}]")
_CONTROLS = frozenset({"Cf", "Cc"})
_EMOJI_STYLE = "\N{VARIATION SELECTOR-16}"
_JOINER = "\N{ZERO WIDTH JOINER}"
_KEYCAP = "\N{COMBINING ENCLOSING KEYCAP}"
_ON_KEYS = frozenset("0123456789#*")
_MODIFIERS = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f]")


def without_unseen(text: str) -> str:
    """The text with nothing for each character that is drawn as nothing, controls included, and a blank for each that
    is drawn as one; white space stays as it is."""
    return "".join(
        character
        for character in _BLANK.sub(" ", _NOTHING.sub("", text))
        if character.isspace() or unicodedata.category(character) not in _CONTROLS
    )


def is_printable(text: str) -> bool:
    """Return whether a text is shown as it is, see ``written_out``."""
    return text.isprintable() and (text.isascii() or written_out(text) == text)


def written_out(text: str, kept: str = "", escape: Callable[[str], str] | None = None) -> str:
    """The text with an escape for each character that nobody sees, that is no character, or that is white space but
    no plain blank. What makes emoji of symbols stays where it does so, and so do those of ``kept``."""
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    escape = escape or _escape
    return "".join(
        char if _is_seen(char) or char in kept or _makes_emoji(text, place) else escape(char)
        for place, char in enumerate(text)
    )


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def _is_seen(char: str) -> bool:
    return char.isprintable() and not _UNSEEN.match(char)


def _makes_emoji(text: str, place: int) -> bool:
    """Return whether the character there gives a symbol the style of an emoji, or joins two of them to one."""
    char, before, after = text[place], text[max(0, place - 1) : place], text[place + 1 : place + 2]
    if char == _EMOJI_STYLE:
        return _is_symbol(before) or (before in _ON_KEYS and after == _KEYCAP)
    if char != _JOINER or not _is_symbol(after):
        return False
    return _is_symbol(text[max(0, place - 2) : place - 1] if _MODIFIERS.match(before) else before)


def _is_symbol(char: str) -> bool:
    if not char or not _is_seen(char):
        return False
    return unicodedata.category(char) == "So" or _SYMBOL.match(char) is not None
