"""Words that are a stop: they act at once, whatever the agent does, and no model is asked about them.

A text is a stop if it consists of nothing but words of ``_STOPS`` (one at least), of ``_AROUND``, and names of the
agent and its robots, in any order and of any number. Case, the form of accents, punctuation, numbers and characters
that nobody sees do not matter. So "Robot1: stop, please!!!1" is one; "stop at the door and wait" and "don't stop" are
none, and neither is "stop turning", which is about one thing of perhaps many: the model hears it like any other
input.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import field_validator

from dimos_streams.common.readable.comparable_text import comparable, normalized
from dimos_streams.common.schemas.frozen_model import FrozenModel

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
        *("ok", "okay", "oh", "just", "right there", "there", "here", "right here", "for now"),
        *("everything", "all", "all of it", "moving", "driving", "robot", "the robot"),
    ),
    "de": ("bitte", "ok", "okay", "jetzt", "sofort", "nein", "alles", "roboter", "der roboter", "den roboter"),
    "fr": (
        "ok",
        "s'il te plaît",
        "s'il vous plaît",
        "maintenant",
        "tout de suite",
        "non",
        "tout",
        "robot",
        "le robot",
    ),
    "es": ("ok", "vale", "por favor", "ahora", "ya", "inmediatamente", "no", "todo", "robot", "el robot"),
}
_NO_WORD = re.compile(r"[\W_]+")


class StopWordSettings(FrozenModel):
    """The words that are a stop."""

    languages: tuple[Language, ...] = ("en",)
    """The languages whose stop words count."""
    words: tuple[str, ...] = ()
    """The user's own words, besides those of the languages."""

    @field_validator("words")
    @classmethod
    def _have_letters(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        for word in words:
            if not _normalised(word):
                raise ValueError(f"{word!r} has neither letters nor digits, so nobody can say it")
        return words


class StopWords:
    """Distinguishes a stop from other input."""

    def __init__(self, settings: StopWordSettings) -> None:
        self._around = _phrases(tuple(word for language in settings.languages for word in _AROUND[language]))
        stops = [word for language in settings.languages for word in _STOPS[language]]
        self._stops = _phrases((*stops, *settings.words))

    def match(self, text: str, names: Iterable[str] = ()) -> bool:
        """Return whether a text is a stop. ``names`` are those by which the agent and its robots may be called."""
        words = _normalised(text).split()
        around = self._around | _phrases(tuple(names))
        longest = max(map(len, self._stops | around), default=0)
        # Up to each word: whether what is before it consists of phrases, without a stop and with one.
        plain, stopped = [True] + [False] * len(words), [False] * (len(words) + 1)
        for start, word in enumerate(words):
            if not plain[start] and not stopped[start]:
                continue
            for end in range(start + 1, min(start + longest, len(words)) + 1):
                phrase = tuple(words[start:end])
                if phrase in self._stops:
                    stopped[end] = True
                if phrase in around or (end == start + 1 and word.isdigit()):
                    plain[end] = plain[end] or plain[start]
                    stopped[end] = stopped[end] or stopped[start]
        return stopped[-1]


@functools.lru_cache(maxsize=100)
def _phrases(texts: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(_normalised(text).split()) for text in texts)


def _normalised(text: str) -> str:
    """The words of a text in small letters with one blank between them."""
    return _NO_WORD.sub(" ", normalized("NFKC", comparable(text)).casefold()).strip()
