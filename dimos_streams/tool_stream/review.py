"""The messages between the bridge and an agent about a call that a skill asks for on the agent's behalf.

The agent's module has one skill with ``audience="bridge"``; it makes the module an agent (``review_skill``). The
bridge calls it with the call in question and reads its stream: the newest event carries a ``Permission`` while the
call may begin, another one means that it has to wait, and a close is a refusal. When the call has begun the bridge
ends the review with ``BEGUN`` as the reason, or with another reason if the call never will.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill import Audience, OnDuplicate
from dimos_streams.tool_stream.event import ToolEvent

REVIEW = "review_call"
"""The name of the skill for reviews."""
BEGUN = "the call has begun"
_FIELD = "permission"


class _WithAudience(Protocol):
    @property
    def audience(self) -> Audience: ...


_Skill = TypeVar("_Skill", bound=_WithAudience)


def review_skill(skills: Iterable[_Skill]) -> _Skill | None:
    """Return the skill by which a module with these skills declares that it is an agent; None if it is not an
    agent."""
    return next((skill for skill in skills if skill.audience == "bridge"), None)


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call that a skill asks for on an agent's behalf."""

    call_id: str
    parent: str
    skill: str
    arguments: Mapping[str, Any]


class Permission(FrozenModel):
    """The permission that a call begins, with these arguments."""

    arguments: dict[str, Any]
    on_duplicate: OnDuplicate | None = None

    def data(self) -> dict[str, Any]:
        """Return the data of the event that gives it."""
        return {_FIELD: self.model_dump(mode="json")}


def permission_in(event: ToolEvent | None) -> Permission | None:
    """Return the permission that a review's newest event gives; None for any other event."""
    if event is None or event.type != "update" or _FIELD not in event.data:
        return None
    try:
        return Permission.model_validate(event.data[_FIELD])
    except ValidationError:  # it comes from outside, and what can't be read permits nothing
        return None
