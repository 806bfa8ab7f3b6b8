"""The skills that the config gives the agent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.policies.skill_selection import SkillSelection
from dimos_streams.common.namespaces import namespace_of
from dimos_streams.tool_stream.gateway import OfferedSkill

_NO_LETTER = re.compile(r"[\W_]+")
_LONGEST = 500
"""Characters of what may be a name with something around it."""


class AllowedGate:
    """Refuses calls of skills that are not in the list; they are not offered to the model either.

    What a skill runs as a part of its own is its author's choice, and passes, unless its caller has named it.
    """

    def __init__(
        self,
        selection: SkillSelection,
        offerings: Callable[[str], Sequence[OfferedSkill]] = lambda name: (),
    ) -> None:
        """``offerings`` are all skills of a name: where several modules offer it, each of them has to be allowed."""
        self.selection = selection
        self._offerings = offerings

    def allowed(self, skill: OfferedSkill) -> bool:
        """Whether the model may call a skill."""
        return all(map(self.selection.has, (skill, *self._offerings(skill.name))))

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        return self._refusal(request) or Allow(
            request.arguments, request.on_duplicate, again=lambda arguments: self._refusal(request)
        )

    def _refusal(self, request: CallRequest) -> Refuse | None:
        if request.authored or self.allowed(request.skill):
            return None
        return Refuse(f"Not run: {request.skill.name!r} is none of your skills.")


def names_skill(arguments: Mapping[str, Any], skill: OfferedSkill) -> bool:
    """Whether one of a call's arguments, or a part of one, is a skill's name, however it is spelt: with or without
    namespace, in capitals, with other characters between its words."""
    names = _names_of(skill)
    left: list[Any] = [arguments]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            left += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            left += value
        elif isinstance(value, str) and len(value) <= _LONGEST and _letters(value) in names:
            return True
    return False


def _names_of(skill: OfferedSkill) -> set[str]:
    """The public name, and what is left of it where parts of the namespace are understood."""
    name, names = skill.name, {_letters(skill.name)}
    for part in namespace_of(skill.module).split("/"):
        name = name.removeprefix(f"{part}_")
        names.add(_letters(name))
    return names


def _letters(text: str) -> str:
    return _NO_LETTER.sub("_", unicodedata.normalize("NFKC", text).casefold()).strip("_")
