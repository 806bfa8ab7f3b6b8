"""Bounds that depend on the kind of the model, where a blueprint leaves them to it (``auto``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

Auto: TypeAlias = Literal["auto"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds that suit a kind of model. None means no bound."""

    motions: int | None = None
    """Maximum number of motions in a mission without an approved plan."""
    calls_per_answer: int | None = None
    actions: int | None = None
    """Maximum number of answers in a mission that ask for calls one right after the other; see ``runaway``."""
    deadline_s: float | None = None
    """Maximum duration of a mission, in s."""
    max_tokens: int | None = None
    """Maximum number of tokens of a mission."""
    tools: int | None = None
    """Maximum number of tools in one request: more are warned of."""


WORD_BY_WORD = Bounds()
"""The bounds of the offline model, which does what the operator says, and nothing on its own account."""
LANGUAGE_MODEL = Bounds(
    motions=2, calls_per_answer=8, actions=100, deadline_s=8 * 3600.0, max_tokens=5_000_000, tools=128
)
"""The bounds of a language model: a shift of patrolling fits; a model that has lost its way is ended in seconds or by
its bill."""
SCRIPTED = replace(LANGUAGE_MODEL, max_tokens=None)
"""The bounds of a script, which stands for a language model and has no bill."""


def bounds_of(model: str) -> Bounds:
    """The bounds for a model of that name; whatever is not known to be harmless counts as a language model."""
    if model == "offline":
        return WORD_BY_WORD
    return SCRIPTED if model.startswith("scripted:") else LANGUAGE_MODEL


def settled(value: T | Auto, default: T) -> T:
    """Return a setting, or the default of the model's kind if it is ``auto``."""
    return default if isinstance(value, str) else value
