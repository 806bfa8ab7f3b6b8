"""Lists as people write them."""

from __future__ import annotations

from collections.abc import Sequence


def listed(texts: Sequence[str], conjunction: str = "and") -> str:
    """``"a, b and c"``; there must be at least one text."""
    *most, last = texts
    return f"{', '.join(most)} {conjunction} {last}" if most else last
