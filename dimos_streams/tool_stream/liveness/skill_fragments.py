"""The skills of one module as JSON that fits into heartbeats: in one piece, or in numbered fragments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from dimos_streams.common.invalid import problem_of
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.schemas.references import NAMING
from dimos_streams.common.secrets import redacted, redacted_values
from dimos_streams.skill import SkillInfo, name_fault
from dimos_streams.tool_stream.arguments.schemas import check_schema

FRAGMENT_BYTES = 40_000
"""Maximum size of what one heartbeat describes, in bytes: a message of more than 60 kB would be lost on an untuned
machine."""
MAX_FRAGMENTS = 10
_BEGINNING = '{"part":'
_WORDS = frozenset({"type", "required", "enum", "const", "$ref", "format"})
"""The keywords of a schema whose values callers go by."""
_DATA = frozenset({"default", "examples"})
"""The keywords whose values are no schemas, whatever they look like."""
_MAX_LEFT_OUT = 100
"""Maximum number of skills that are left out of one description: each costs more time than one that is read."""
_SHOWN = 60
"""Maximum length of a skill's name in an error, in characters."""
_MOST_REMEMBERED, _REMEMBERED_BYTES = 64, 8192
"""Maximum number of descriptions that are remembered, and the maximum size of each, in bytes."""
_sound: dict[str, tuple[SkillInfo, ...]] = {}
"""Descriptions of which nothing was left out, with their skills: a module that begins anew, and each of many robots
that are alike, sends the same."""


class SkillFragment(FrozenModel):
    """A fragment of a description that is too long for one heartbeat; in one piece, skills are a plain list."""

    part: int = Field(ge=0, lt=MAX_FRAGMENTS)
    parts: int = Field(ge=2, le=MAX_FRAGMENTS)
    skills: tuple[SkillInfo, ...]


def _without_secrets(info: SkillInfo) -> dict[str, Any]:
    """Return a skill with its texts and its parameters' values redacted: by its other traits it is found and called,
    and a secret may be a word of them."""
    texts = {"description": redacted(info.description), "parameters": _schema_without_secrets(info.parameters)}
    return info.model_dump(mode="json") | texts


def _schema_without_secrets(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: _keyword_without_secrets(name, value) for name, value in part.items()}
    return [_schema_without_secrets(each) for each in part] if isinstance(part, list) else redacted_values(part)


def _keyword_without_secrets(name: str, value: Any) -> Any:
    if name in _DATA:
        return redacted_values(value)
    if name in NAMING and isinstance(value, Mapping):
        return {name: _schema_without_secrets(part) for name, part in value.items()}
    return value if name in _WORDS and not isinstance(value, Mapping) else _schema_without_secrets(value)


def offered(module: str, infos: Iterable[SkillInfo]) -> tuple[str, ...]:
    """Return what ``described`` does, for skills of a module here. Raises ``TypeError`` as it does, and for a schema
    for which listeners would leave a skill out."""
    offer = tuple(infos)
    for info in offer:
        try:
            check_schema(info.parameters)
        except ValueError as error:
            raise TypeError(f"skill {info.name!r} can't be offered: its schema can't be used: {error}") from error
    return described(module, offer)


def described(module: str, infos: Iterable[SkillInfo]) -> tuple[str, ...]:
    """Return what a module's heartbeats say of its skills, without secrets, one text for each. Raises ``TypeError``
    for more than fits, and for a name that listeners would not believe."""
    groups: list[list[str]] = [[]]
    room = FRAGMENT_BYTES + 1
    for info in infos:
        if fault := name_fault(info):
            raise TypeError(f"skill {info.name!r} can't be offered: {fault}")
        text = json.dumps(_without_secrets(info), separators=(",", ":"))
        if len(text) > FRAGMENT_BYTES:
            raise TypeError(f"skill {info.name!r} has a schema of {len(text)} bytes, {FRAGMENT_BYTES} are possible")
        if len(text) + 1 > room:
            groups.append([])
            room = FRAGMENT_BYTES + 1
        groups[-1].append(text)
        room -= len(text) + 1
    if len(groups) > MAX_FRAGMENTS:
        size = f"{sum(len(text) for group in groups for text in group)} bytes"
        raise TypeError(
            f"module {module!r}: the schemas of its skills have {size}, {MAX_FRAGMENTS * FRAGMENT_BYTES} are possible"
        )
    if len(groups) == 1:
        return (f"[{','.join(groups[0])}]",)
    return tuple(
        f'{_BEGINNING}{number},"parts":{len(groups)},"skills":[{",".join(group)}]}}'
        for number, group in enumerate(groups)
    )


def skills_in(text: str, skipped: Callable[[str], None]) -> tuple[SkillInfo, ...]:
    """Return the skills of a description in one piece. ``skipped`` is told why one is left out that can't be read or
    used: the module's others are offered all the same. Raises ``ValueError`` for what is no description."""
    if (known := _sound.get(text)) is not None:
        return known
    entries = parse_json(text)
    found = _believed(entries, skipped)
    if len(found) == len(entries) and len(text) <= _REMEMBERED_BYTES:
        if len(_sound) >= _MOST_REMEMBERED:
            _sound.clear()
        _sound[text] = found
    return found


def fragment_in(text: str, skipped: Callable[[str], None]) -> SkillFragment:
    """Return a fragment of a description. ``skipped`` is told why a skill is left out that can't be read or used.
    Raises ``ValueError`` for what is no fragment."""
    given = parse_json(text)
    return SkillFragment.model_validate({**given, "skills": _believed(given.get("skills"), skipped)})


def _believed(entries: object, skipped: Callable[[str], None]) -> tuple[SkillInfo, ...]:
    if not isinstance(entries, list):
        raise ValueError("its skills are no list")
    found: list[SkillInfo] = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(_skill(entry))
        except ValueError as error:  # pydantic's error is one
            if number - len(found) > _MAX_LEFT_OUT:
                raise ValueError(f"more than {_MAX_LEFT_OUT} of its skills can't be used") from error
            skipped(f"{_title(entry, number)}: {problem_of(error, 'it')}")
    return tuple(found)


def _skill(entry: object) -> SkillInfo:
    """Return the skill that an entry describes. Raises ``ValueError`` for one that nobody could call."""
    info = SkillInfo.model_validate(entry)
    if fault := name_fault(info):
        raise ValueError(fault)
    check_schema(info.parameters)
    return info


def _title(entry: object, number: int) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return shortened(repr(name), _SHOWN) if isinstance(name, str) else f"number {number}"


def is_fragment(text: str) -> bool:
    """Return whether a description is a fragment of one."""
    return text.startswith(_BEGINNING)


def fragment_number(text: str) -> int:
    """Return the number of a fragment; 0 for a whole description, and for what is neither."""
    digits = text.removeprefix(_BEGINNING).partition(",")[0] if is_fragment(text) else ""
    return int(digits) if len(digits) < 4 and digits.isdecimal() else 0


@dataclass(slots=True)
class PartialSkills:
    """The fragments of one description that have come, until all are there."""

    version: str = ""
    parts: int = 0
    found: dict[int, tuple[SkillInfo, ...]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The size of the fragments that are there, as JSON."""
        return sum(self.sizes.values())

    def add(self, version: str, fragment: SkillFragment, size: int) -> tuple[SkillInfo, ...] | None:
        """Take a fragment; return all skills once the last one has come, else None. Those of another version are
        forgotten."""
        if (version, fragment.parts) != (self.version, self.parts):
            self.version, self.parts = version, fragment.parts
            self.found.clear()
            self.sizes.clear()
        if fragment.part >= fragment.parts:
            return None
        self.found[fragment.part], self.sizes[fragment.part] = fragment.skills, size
        if len(self.found) < self.parts:
            return None
        return tuple(info for number in range(self.parts) for info in self.found[number])
