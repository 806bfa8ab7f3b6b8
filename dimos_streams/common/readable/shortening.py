"""Texts within a number of characters, each with a mark where something is left out."""

from __future__ import annotations


def beginning(text: str, characters: int, mark: str = "…") -> str:
    """Return the text, or its first ``characters`` with the mark behind them."""
    return text if len(text) <= characters else f"{text[:characters]}{mark}"


def shortened(text: str, characters: int, mark: str = "...") -> str:
    """Return the text, or its beginning and the mark, ``characters`` together."""
    return text if len(text) <= characters else f"{text[: characters - len(mark)]}{mark}"


def ends(text: str, characters: int) -> str:
    """Return the text, or as much of its beginning and of its end as has ``characters`` together, with a line between
    them that says so."""
    half = characters // 2
    return text if len(text) <= characters else f"{text[:half]}\n… ({len(text)} characters) …\n{text[-half:]}"


def at_most(text: str, characters: int) -> str:
    """Return the text, or the beginning of one that is longer than ``characters``, by words where they are short,
    with "…" behind it."""
    if len(text) <= characters:
        return text
    words = text[: characters - 1].rpartition(" ")[0]
    return f"{words} …" if len(words) > characters // 2 else f"{text[: characters - 1]}…"
