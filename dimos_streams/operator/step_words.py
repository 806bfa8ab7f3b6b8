"""The words with which people step through an agent's calls: a mode, or the id of the call that they have seen."""

from __future__ import annotations

import re
from typing import Any, Final

from dimos_streams.common.readable.shortening import beginning
from dimos_streams.errors import UserError

STEP_WORDS: Final = "[on|off|once|ID]"
"""The words, as help texts have them."""
_MODES = ("on", "off", "once")
_WAITING = re.compile(r"[0-9a-f]{1,32}-[0-9]{1,9}")
_SHOWN = 100


def is_step(word: str) -> bool:
    """Return whether a word is one of these."""
    return word in _MODES or _WAITING.fullmatch(word) is not None


def step_arguments(word: str) -> dict[str, Any]:
    """Return the arguments of an agent's skill ``step``. Raises ``UserError``."""
    if word in _MODES:
        return {"mode": word}
    if is_step(word):
        return {"mode": "once", "waiting": word}
    shown = repr(beginning(word, _SHOWN))
    raise UserError(
        f"{shown} is no step: valid are on, off, once, or the ID of a call that waits, as its note shows it"
    )
