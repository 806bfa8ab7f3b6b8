"""The test of whether a valid name is probably a misspelling of another one. For names that don't exist there is
``errors.suggest``."""

from __future__ import annotations

from collections.abc import Iterable

_SHORTEST = 3
"""The least number of letters of a word that may be misspelt."""
_SHORTEST_REPLACED = 4
"""The same where a letter stands in the place of another one: shorter words that differ so are others."""


def misspelt(word: str, names: Iterable[str]) -> list[str]:
    """The names that a word is misspelt from, in order.

    Those that differ by a number, as ``arm1`` and ``arm2``, or by a single letter, as ``arm_l`` and ``arm_r``, are
    others on purpose.
    """
    return sorted(name for name in names if name != word and _is_misspelt(word, name))


def _is_misspelt(word: str, name: str) -> bool:
    parts, others = word.split("_"), name.split("_")
    if len(parts) != len(others):
        return word.replace("_", "") == name.replace("_", "")
    return all(one == other or _is_slip(one, other) for one, other in zip(parts, others, strict=True))


def _is_slip(one: str, other: str) -> bool:
    """Return whether a word becomes another one by a letter that is left out, doubled, swapped or replaced."""
    if any(map(str.isdigit, one + other)) or min(len(one), len(other)) < _SHORTEST:
        return False
    begin = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[begin:], other[begin:]
    return (
        one[1:] == other
        or one == other[1:]
        or (one[:2] == other[1::-1] and one[2:] == other[2:])
        or (one[1:] == other[1:] and begin + len(one) >= _SHORTEST_REPLACED)
    )
