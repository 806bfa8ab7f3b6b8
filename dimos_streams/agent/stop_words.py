"""Words that are a stop: they act at once, whatever the agent does, and no model is asked about them.

A text is a stop if it consists of nothing but words of ``_STOPS`` (one at least), of ``_AROUND``, and names of the
agent and its robots, in any order. Case, the form of accents and punctuation do not matter.
So "Robot1: stop, please!" is one, and "stop at the door and wait" or "don't stop" is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

Language = Literal["en", "de", "fr", "es"]

_STOPS: Mapping[Language, tuple[str, ...]] = {
    "en": ("stop", "halt", "freeze", "abort", "cancel", "emergency stop", "stand still", "hold still", "don't move"),
    "de": ("stop", "stopp", "halt", "anhalten", "halt an", "stehen bleiben", "bleib stehen", "abbrechen", "nothalt"),
    "fr": ("stop", "halte", "arrête", "arrêtez", "arrête-toi", "arrêtez-vous", "ne bouge plus", "annule"),
    "es": ("stop", "alto", "para", "detente", "deténgase", "quieto", "no te muevas", "cancela"),
}
_AROUND: Mapping[Language, tuple[str, ...]] = {
    "en": (
        *("please", "now", "right now", "immediately", "at once", "no", "hey", "it", "that"),
        *("everything", "all", "all of it", "moving", "driving", "robot", "the robot"),
    ),
    "de": ("bitte", "jetzt", "sofort", "nein", "alles", "roboter", "der roboter", "den roboter"),
    "fr": ("s'il te plaît", "s'il vous plaît", "maintenant", "tout de suite", "non", "tout", "robot", "le robot"),
    "es": ("por favor", "ahora", "ya", "inmediatamente", "no", "todo", "robot", "el robot"),
}
_LONGEST = 200
_NO_WORD = re.compile(r"[\W_]+")


class StopWordSettings(BaseModel):
    """Which words are a stop."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    languages: tuple[Language, ...] = ("en",)
    words: tuple[str, ...] = ()
    """Your own, besides those of the languages."""

    @field_validator("words")
    @classmethod
    def _have_letters(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        for word in words:
            if not _normalised(word):
                raise ValueError(f"{word!r} has neither letters nor digits, so nobody can say it")
        return words


class StopWords:
    """Tells a stop from other words."""

    def __init__(self, settings: StopWordSettings) -> None:
        self._around = _alternatives(word for language in settings.languages for word in _AROUND[language])
        stops = [word for language in settings.languages for word in _STOPS[language]]
        self._stops = _alternatives((*stops, *settings.words))

    def match(self, text: str, names: Iterable[str] = ()) -> bool:
        """Whether a text is a stop. ``names`` are those that the agent and its robots may be called by."""
        if not self._stops or len(text) > _LONGEST:
            return False
        around = "|".join(part for part in (self._around, _alternatives(names)) if part)
        others = f"(?:(?:{around}) )*" if around else ""
        return re.fullmatch(f"{others}(?:(?:{self._stops}) {others})+", f"{_normalised(text)} ") is not None


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(re.escape(_normalised(word)) for word in words if _normalised(word)))


def _normalised(text: str) -> str:
    """Words in small letters with one blank between them."""
    return _NO_WORD.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
