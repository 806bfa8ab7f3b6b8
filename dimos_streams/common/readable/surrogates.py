"""Text from outside made whole: halves of UTF-16 pairs, surrogates, joined or replaced.

JSON and some operating systems can name one half of a character beyond U+FFFF. Such a text can be neither encoded nor
sent, and one of them in a conversation would be refused by its server for ever.
"""

from __future__ import annotations

import os


def well_formed(text: str) -> str:
    """Return the text with the halves of a pair joined, and U+FFFD for a half without its other one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def with_escaped_bytes(text: str) -> str:
    """Return a path or an argument that is not UTF-8 with the bytes escaped that make it so, ``\\xff``; empty for one
    that is UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text).decode(errors="backslashreplace")
    return ""


class TextJoiner:
    """Makes text that comes in pieces well-formed; the halves of a pair may come in different pieces."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """Return the text of the next piece, but for a half at its end, which waits for the other one."""
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return well_formed(piece)

    def rest(self) -> str:
        """Return the text that still waited at the end."""
        rest, self._half = self._half, ""
        return well_formed(rest)
