"""Reasons of several people for one thing that holds."""

from __future__ import annotations

from dimos_streams.common.readable.shortening import at_most

_BETWEEN = "; "


def joined_reasons(newest: str, before: str, characters: int) -> str:
    """Return a new reason with those that were given before it, each once, in at most ``characters``: the oldest are
    cut. An empty one says nothing."""
    if not newest or f"{_BETWEEN}{newest}{_BETWEEN}" in f"{_BETWEEN}{before}{_BETWEEN}":
        return before
    return at_most(f"{newest}{_BETWEEN}{before}" if before else newest, characters)
