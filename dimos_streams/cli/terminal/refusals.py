"""What a call was refused for is shown once: whoever says the same again says nothing new."""

from __future__ import annotations

_REMEMBERED = 1000


class ShownRefusals:
    """The refusals of calls that a reporter has shown, as models and missions repeat them."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    def add(self, skill: str, text: str) -> None:
        """One was shown, whole."""
        self._said[f"{skill}: {text}"] = None
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]

    def left_of(self, text: str) -> str:
        """What a text says besides: it may have lines that repeat refusals, or have one in brackets as its reason."""
        left = "\n".join(line for line in text.splitlines() if not self._has(line))
        for said in self._said:
            left = left.replace(f" ({said})", "")
        return left

    def _has(self, line: str) -> bool:
        """Whether one was shown, of which this may be the beginning."""
        return line in self._said or (line.endswith("…") and any(said.startswith(line[:-1]) for said in self._said))
