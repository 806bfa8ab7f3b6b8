"""The refusals that were shown already: models and missions repeat them, and a repetition says nothing new."""

from __future__ import annotations

from dimos_streams.common.readable.shortening import shortened

_REMEMBERED = 1000
_REASON = 120
"""Maximum length of a refusal that is repeated as a reason, in characters."""


class ShownRefusals:
    """The refusals of calls that a reporter has shown, as models and missions repeat them."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    def add(self, skill: str, text: str) -> None:
        """Note that a refusal was shown in full."""
        self._said[f"{skill}: {text}"] = None
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]

    def left_of(self, text: str) -> str:
        """Return a text without the lines that repeat refusals."""
        return "\n".join(line for line in text.splitlines() if not self._has(line))

    def shortened_in(self, text: str) -> str:
        """Return a text with the beginning only of a long refusal that is its reason in brackets."""
        for said in self._said:
            text = text.replace(f"({said})", f"({shortened(said, _REASON)})")
        return text

    def _has(self, line: str) -> bool:
        """Return whether a refusal was shown that this line is, or is the beginning of."""
        return line in self._said or (line.endswith("…") and any(said.startswith(line[:-1]) for said in self._said))
