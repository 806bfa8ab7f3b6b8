"""Compares what is seen with what is asked for.

The grammar is a small one, of everyday descriptions of people: "the man with the green shirt", "someone wearing red",
"person in a red shirt and blue trousers". Negations are not understood, so a description with one matches only
itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import pairwise
from typing import TypeVar

from dimos_streams.common.readable.comparable_text import in_small_letters

MATCH_THRESHOLD = 0.6
"""The lowest score that counts as a match."""

R = TypeVar("R")

_LONGEST_REMEMBERED = 1200
_UNKNOWN_WORD = 0.85
_UNKNOWN_CLOTHES = 0.5
"""An unknown word for what somebody wears ("in mauve", "with a tuxedo") decides: nobody is followed who only might be
meant."""
_OTHER_GARMENT = 0.9
_UNSEEN = 0.4


def _words(table: Mapping[str, str]) -> dict[str, str]:
    return {word: name for name, words in table.items() for word in (name, *words.split())}


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COLOURS = _words(
    {
        "red": "crimson scarlet maroon burgundy ruby",
        "blue": "navy azure cobalt indigo denim",
        "cyan": "turquoise teal aqua",
        "green": "lime olive emerald khaki",
        "yellow": "gold golden mustard",
        "orange": "amber",
        "purple": "violet lilac lavender magenta",
        "pink": "rose fuchsia salmon",
        "brown": "tan chestnut chocolate",
        "black": "ebony",
        "white": "ivory cream",
        "grey": "gray silver charcoal",
        "beige": "sand",
    }
)
_SHADES = _set("dark light bright pale deep vivid")
_GARMENTS = _words(
    {
        "shirt": "t-shirt tshirt tee top blouse polo",
        "jacket": "coat anorak blazer parka",
        "pullover": "sweater jumper hoodie sweatshirt cardigan",
        "vest": "waistcoat",
        "dress": "gown",
        "trousers": "pants jeans slacks chinos leggings",
        "shorts": "",
        "skirt": "",
        "hat": "cap beanie helmet",
        "shoes": "shoe boots sneakers trainers",
        "hair": "",
        "bag": "backpack rucksack handbag",
    }
)
_REGIONS = {
    **dict.fromkeys(("shirt", "jacket", "pullover", "vest", "dress"), "upper"),
    **dict.fromkeys(("trousers", "shorts", "skirt"), "lower"),
}
_PERSONS = _set(
    "person people human someone somebody anyone anybody everyone pedestrian one individual adult child kid"
)
_MALE = _set("man guy boy gentleman male men he")
_FEMALE = _set("woman lady girl female women she")
_WEARING = _set("in with wearing wears dressed has having")
_RELATIONS = _set(
    "in with wearing who which that wears dressed has having is at by near next to behind beside on whose"
)
_FILLERS = _RELATIONS | _set(
    "a an the and or any some clothes clothing outfit colored coloured of his her their please"
)
_NEGATIONS = _set("not no without never neither nor except but isn't aren't doesn't don't")


@dataclass(frozen=True, slots=True)
class Garment:
    """Something worn: a name of the garments' table, or "" if only colours are given ("in red")."""

    name: str
    colours: frozenset[str]

    @property
    def region(self) -> str:
        """The part of the body: upper, lower, or the garment itself (hat, shoes, …)."""
        return _REGIONS.get(self.name, self.name)


@dataclass(frozen=True, slots=True)
class Appearance:
    """The content of a description or a label: the head noun ("person", "dog"), gender, garments, other words."""

    head: str
    gender: str = ""
    garments: tuple[Garment, ...] = ()
    unknown: tuple[str, ...] = ()
    unknown_clothes: tuple[str, ...] = ()
    """Those of the unknown words that say what is worn."""
    negated: bool = False


def _remembered(most: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Have a function of texts remember ``most`` results, but not those of long texts, which anybody may send."""

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        remembering = lru_cache(most)(function)

        @wraps(function)
        def call(*texts: str) -> R:
            is_short = sum(map(len, texts)) <= _LONGEST_REMEMBERED
            return remembering(*texts) if is_short else function(*texts)

        return call

    return decorate


@_remembered(512)
def parse(text: str) -> Appearance:
    """Read a description. Never raises: words outside the grammar end up in `unknown`."""
    words = _tokens(text)
    head = _head(words)
    garments: list[Garment] = []
    colours: list[str] = []
    unknown: list[str] = []
    for word, following in pairwise([*words, ""]):
        if word in _COLOURS:
            colours.append(_COLOURS[word])
        elif word in _GARMENTS:
            garments.append(Garment(_GARMENTS[word], frozenset(colours)))
            colours = []
        elif word in _RELATIONS and colours:
            garments.append(Garment("", frozenset(colours)))
            colours = []
        elif not _is_known(word, following):
            unknown.append(word)
            if word != head and (not following or following in _FILLERS):
                colours = []  # "the blue table" in the background, not "a blue striped shirt"
    if colours:
        garments.append(Garment("", frozenset(colours)))
    others = tuple(word for word in unknown if word != head)
    worn = _worn(words)
    clothes = tuple(word for word in others if word in worn)
    return Appearance(head, _gender(words), tuple(garments), others, clothes, not _NEGATIONS.isdisjoint(words))


@_remembered(4096)
def match_score(description: str, label: str) -> float:
    """The degree to which a label fits a description, 0..1; from `MATCH_THRESHOLD` on it is a match.

    Everything that the description demands must hold for the label; what the label says beyond it does not
    matter. A bare colour ("in red") means the upper body. Words outside the grammar lower the score, those for
    clothes ("in mauve") so far that only a label with the same words is a match. An unknown head noun ("dog")
    matches only a label with the same one."""
    wanted, seen = _tokens(description), _tokens(label)
    if not wanted:
        return 0.0
    if wanted == seen:
        return 1.0
    return _appearance_score(parse(description), parse(label))


def _appearance_score(wanted: Appearance, seen: Appearance) -> float:
    if wanted.head != seen.head or wanted.negated or seen.negated:
        return 0.0
    if wanted.gender and seen.gender and wanted.gender != seen.gender:
        return 0.0
    unfulfilled = [word for word in wanted.unknown if word not in seen.unknown]
    costs = (_UNKNOWN_CLOTHES if word in wanted.unknown_clothes else _UNKNOWN_WORD for word in unfulfilled)
    worn = min((_garment_score(garment, seen.garments) for garment in wanted.garments), default=1.0)
    return float(worn * math.prod(costs))


def _garment_score(wanted: Garment, worn: tuple[Garment, ...]) -> float:
    """Return 1 if the garment is worn, 0 if something that contradicts it is, and a value in between if that isn't
    known."""
    region = wanted.region or "upper"
    rivals = [garment for garment in worn if garment.region == region]
    vague = [garment for garment in worn if not garment.name]
    if rivals:
        return max(_same_place(wanted, rival) for rival in rivals)
    if not wanted.name and any(wanted.colours <= garment.colours for garment in vague):
        return 1.0
    if vague and region == "upper":
        return max(_OTHER_GARMENT**2 * _shared(wanted.colours, garment.colours) for garment in vague)
    return _UNSEEN


def _same_place(wanted: Garment, worn: Garment) -> float:
    same = not wanted.name or wanted.name == worn.name
    if not wanted.colours:
        return 1.0 if same else _UNSEEN
    if not worn.colours:
        return _UNSEEN
    return _shared(wanted.colours, worn.colours) * (1.0 if same else _OTHER_GARMENT)


def _shared(wanted: frozenset[str], worn: frozenset[str]) -> float:
    return len(wanted & worn) / len(wanted) if wanted else 1.0


def _tokens(text: str) -> list[str]:
    """Lower-case words; a possessive ("man's") keeps its mark so that it can't be taken for the head."""
    plain = in_small_letters(text).replace("\u2019", "'").replace("t shirt", "t-shirt")
    return re.findall(r"[^\W\d_]+(?:['-][^\W\d_]+)*", plain)


def _worn(words: list[str]) -> set[str]:
    """The words for what somebody wears, of phrases that name no known colour; places ("in the kitchen") are none."""
    found: set[str] = set()
    phrase: list[str] = []
    within = False
    for word, following in pairwise([*words, "and", ""]):
        if word in _RELATIONS or word == "and":
            if _COLOURS.keys().isdisjoint(phrase):
                found.update(phrase)
            phrase = []
            within = following != "the" if word in _WEARING else within and word == "and"
        elif within:
            phrase.append(word)
    return found


def _is_known(word: str, following: str) -> bool:
    if word in _SHADES:
        return following in _COLOURS
    return _is_person(word) or word in _FILLERS or word in _NEGATIONS


def _is_person(word: str) -> bool:
    return word in _PERSONS or word in _MALE or word in _FEMALE


def _gender(words: list[str]) -> str:
    for word in words:
        if word in _MALE or word in _FEMALE:
            return "male" if word in _MALE else "female"
    return ""


def _head(words: list[str]) -> str:
    """The noun that the description is about; "person" when only clothes or colours are named."""
    first = next((i for i, word in enumerate(words) if word in _RELATIONS), len(words))
    phrase = [word for word in words[:first] if word not in _FILLERS and word not in _NEGATIONS]
    if not phrase or any(_is_person(word) for word in phrase):
        return "person"
    noun = phrase[-1]
    return "person" if noun in _COLOURS or noun in _GARMENTS or noun in _SHADES else noun
