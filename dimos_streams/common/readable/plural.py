"""Numbers of things as people write them."""

from __future__ import annotations


def plural(count: int, thing: str) -> str:
    """Return ``"1 call"``, ``"2 calls"``."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
