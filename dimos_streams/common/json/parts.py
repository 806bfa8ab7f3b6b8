"""The parts of JSON text, counted before it is parsed."""

from __future__ import annotations

from dimos_streams.common.json.depth import without_strings

MOST_PARTS = 30_000
"""Maximum number of brackets, braces and commas in what a client sends: a call's arguments, which may have 40,000
bytes, can't have more than 27,000."""
MOST_NAMES = 10_000
"""Maximum number of names: each takes five bytes of the arguments at least."""


def check_parts(data: bytes) -> None:
    """Raise ``ValueError`` for a text of more parts than anything that a client may ask for. What is made of each
    takes some microseconds, in which nobody else has a turn, and 256 kB can have 130,000."""
    for signs, most, what in ((b"[{,", MOST_PARTS, "lists, objects and commas"), (b":", MOST_NAMES, "names")):
        if _count(data, signs) > most:  # most texts have fewer, with what stands in strings
            count = _count(without_strings(data), signs)
            if count > most:
                raise ValueError(f"it has {count} {what}, {most} are possible")


def _count(data: bytes, signs: bytes) -> int:
    return sum(map(data.count, signs))
