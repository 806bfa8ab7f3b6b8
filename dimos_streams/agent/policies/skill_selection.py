"""The selection of the skills that an agent gets: names, patterns, tags and exceptions, as a blueprint lists them."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from dimos_streams.errors import suggest
from dimos_streams.skill import SkillInfo, public_names
from dimos_streams.skill.tags import checked_tag

ALL = "*"
MAX_ENTRIES = 200
MAX_CHARACTERS = 200
"""Maximum length of one entry, in characters."""
_EXCEPT, _TAG = "!", "tag:"
_PATTERN = re.compile(r"[\w.*?-]+|(/[\w.*?-]+)+")


def _checked_entry(entry: str) -> str:
    """Return an entry. Raises ``ValueError`` for one that can't mean any skill."""
    if len(entry) > MAX_CHARACTERS:
        raise ValueError(f"an entry may have {MAX_CHARACTERS} characters, not {len(entry)}")
    wanted = entry.removeprefix(_EXCEPT)
    if wanted.startswith(_TAG):
        checked_tag(wanted.removeprefix(_TAG))
    elif not _PATTERN.fullmatch(wanted):
        raise ValueError(
            "an entry is a skill's name, a pattern with * and ?, 'tag:NAME', or one of these behind a '!'; "
            "a name in another namespace begins with a slash, '/robot1/go_to'"
        )
    return entry


def _checked_list(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of entries. Raises ``ValueError`` for one of nothing but exceptions: it does not say from
    what."""
    if entries and all(entry.startswith(_EXCEPT) for entry in entries):
        raise ValueError(
            f"there are exceptions only, so nothing is left: put '{ALL}' before them for all other skills"
        )
    return entries


SkillList: TypeAlias = Annotated[
    tuple[Annotated[str, AfterValidator(_checked_entry)], ...],
    Field(max_length=MAX_ENTRIES),
    AfterValidator(_checked_list),
]
"""The entries of a list, as a config has them."""


@dataclass(frozen=True, slots=True)
class SkillSelection:
    """The skills that the entries of a list mean: one entry means the skill, and no exception does, in whatever
    order."""

    entries: tuple[str, ...] = (ALL,)
    module: str = ""
    """The module whose config has the list: a name means skills of its namespace, of those around it, and of none."""

    def has(self, skill: SkillInfo) -> bool:
        """Return whether a skill is one of them."""
        return _has(self, skill.name, skill.tags)

    def unmatched(self, skills: Iterable[SkillInfo]) -> dict[int, str]:
        """The entries that mean none of the given skills, by their places in the list, each with what may be
        meant."""
        known = list(skills)
        found: dict[int, str] = {}
        for place, entry in enumerate(self.entries):
            if entry == ALL or any(_means(entry, self.module, skill.name, skill.tags) for skill in known):
                continue
            wanted = entry.removeprefix(_EXCEPT)
            if wanted.startswith(_TAG):
                tags = {tag for skill in known for tag in skill.tags}
                found[place] = suggest(wanted.removeprefix(_TAG), tags)
            else:
                found[place] = suggest(wanted, [skill.name for skill in known])
        return found


@functools.lru_cache(maxsize=8192)
def _has(selection: SkillSelection, name: str, tags: tuple[str, ...]) -> bool:
    meant = [entry for entry in selection.entries if _means(entry, selection.module, name, tags)]
    return bool(meant) and not any(entry.startswith(_EXCEPT) for entry in meant)


def _means(entry: str, module: str, name: str, tags: tuple[str, ...]) -> bool:
    wanted = entry.removeprefix(_EXCEPT)
    if wanted.startswith(_TAG):
        return wanted.removeprefix(_TAG) in tags
    return is_meant(wanted, module, name)


def is_meant(wanted: str, module: str, name: str) -> bool:
    """Return whether a setting of ``module`` that names skills, perhaps with ``*`` and ``?``, means the skill of that
    public name: in the module's namespace, in those around it, or in none."""
    return any(pattern.match(name) for pattern in _patterns(wanted, module))


@functools.lru_cache(maxsize=4096)
def _patterns(wanted: str, module: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(fnmatch.translate(name)) for name in public_names(wanted, module))
