"""Refusals of calls: what a person can do about one, and which were shown already."""

from __future__ import annotations

import shlex

from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import CallRejectedError, KeyUsedError

_REMEMBERED = 1000
_REASON = 120
"""Maximum length of a refusal that is repeated as a reason, in characters."""


def ways_on(error: CallRejectedError, waited_s: float = 0.0) -> str:
    """Return, behind a semicolon, what a person can do about the call that is in the way or has the same key, after
    having waited for ``waited_s``; empty if there is no such call."""
    if isinstance(error, KeyUsedError):
        return f"; `dimos-streams follow {shlex.quote(error.call_id)}` shows that call"
    if not error.holder:
        return ""
    option = "--on-duplicate chooses otherwise"
    if error.resource:
        option = f"it was not free within {waited_s:g} s" if waited_s else "--lease-wait SECONDS waits for it"
    commands = [f"`dimos-streams {command} {shlex.quote(error.holder)}`" for command in ("follow", "cancel")]
    return f"; {option}, {commands[0]} shows that call, {commands[1]} ends it"


class ShownRefusals:
    """The refusals of calls that a reporter has shown, as models and missions repeat them: a repetition says nothing
    new."""

    def __init__(self) -> None:
        self._said = NewestEntries[str, None](_REMEMBERED)

    def add(self, skill: str, text: str) -> None:
        """Note that a refusal was shown in full."""
        self._said[f"{skill}: {text}"] = None

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
