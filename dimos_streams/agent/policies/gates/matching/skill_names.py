"""Names of skills in the arguments of a call, by which a caller may choose the skill that another one calls."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from dimos_streams.common.names import namespace_of
from dimos_streams.tool_stream.gateway import OfferedSkill


def names_skill(arguments: Mapping[str, Any], skill: OfferedSkill) -> bool:
    """Return whether one of a call's arguments, or a part of one, is a skill's name, however it is spelt and however
    long: with or without namespace, in capitals, with accents, with anything but letters and digits around and within
    it, or with letters in between that a skill drops which keeps only those of ASCII."""
    names = _names_of(skill)
    left: list[Any] = [arguments]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            left += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            left += value
        elif isinstance(value, str) and not names.isdisjoint(_readings(value)):
            return True
    return False


def _names_of(skill: OfferedSkill) -> set[str]:
    """The letters of the public name, and of what is left of it without parts of the namespace."""
    name, names = skill.name, {_letters(skill.name)}
    for part in namespace_of(skill.module).split("/"):
        name = name.removeprefix(f"{part}_")
        names.add(_letters(name))
    return names - {""}


def _readings(text: str) -> tuple[str, ...]:
    letters = _letters(text)
    return letters, _ascii(letters), _letters(_ascii(text))


def _letters(text: str) -> str:
    """The letters and digits of a text, in their plain forms."""
    return text.translate({ord(character): _plain(character) for character in dict.fromkeys(text)})


def _plain(character: str) -> str:
    """The plain form of one character. They are taken one by one, because ordering the accents of a long text takes
    time that grows with its square."""
    cased = unicodedata.normalize("NFKD", character).upper().casefold()  # a dotless i is one only by its capital
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", cased)))


def _ascii(text: str) -> str:
    return text.encode("ascii", "ignore").decode()
