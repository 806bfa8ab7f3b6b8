"""What detectors are asked to look for: descriptions of people and things."""

from __future__ import annotations

from collections.abc import Sequence

from dimos_streams.errors import SkillError


def cleaned_descriptions(descriptions: Sequence[str], argument: str) -> list[str]:
    """Return the descriptions without blanks and repetitions. Raises ``SkillError`` that names the argument if none
    is left."""
    cleaned = list(dict.fromkeys(text.strip() for text in descriptions if text.strip()))
    if not cleaned:
        raise SkillError(f"{argument} must say what to look out for, not {list(descriptions)!r}")
    return cleaned
