"""The limits of how far the agent may go: of a turn, of a mission, of a call.

A blueprint states them as ``config.LimitSettings``, some of which may be ``auto``: what suits the kind of the model.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel

Auto: TypeAlias = Literal["auto"]
T = TypeVar("T")


class FixedLimits(FrozenModel):
    """The limits that do not depend on the model. None means no limit."""

    max_consecutive_errors: int = Field(default=3, ge=1)
    """The number of answers in a row with nothing but failed calls at which the turn ends."""
    answer_characters: int = Field(default=20_000, ge=1)
    """Maximum length of an answer's text, in characters. An answer that has more, or more of the following, is cut
    off there."""
    reasoning_characters: int = Field(default=200_000, ge=1)
    """Maximum length of what the model thinks before its answer, in characters."""
    argument_characters: int = Field(default=100_000, ge=1)
    """Maximum length of the arguments of all calls of an answer, in characters."""
    call_timeout_s: float | None = Field(default=None, gt=0)
    """The time in s after which a call of the model is ended."""
    actions_per_hour: float = Field(default=600.0, gt=0)
    """The number of actions that grow back in an hour; see ``runaway``."""
    max_cost: float | None = Field(default=None, gt=0)
    """Maximum cost of a mission with its sub-missions, in US dollars; it needs ``model_options.pricing``."""
    max_depth: int = Field(default=3, ge=0)
    """Maximum depth of sub-missions within each other."""
    parallel_calls: int = Field(default=4, ge=1)
    """Maximum number of sensing calls at once."""
    abort_bound_s: float = Field(default=2.0, gt=0)
    """The time in s for what was in flight to end."""
    hold_bound_s: float = Field(default=1.0, gt=0)
    """The time in s for each velocity gate to say that it holds the robot still."""
    undo_timeout_s: float = Field(default=60.0, gt=0)
    """The time in s for each call that takes another back."""


class ModelLimits(FrozenModel):
    """The limits that depend on the model. None means no limit."""

    motions: int | None = None
    """Maximum number of motions that may begin in a mission without an approved plan."""
    calls_per_answer: int | None = None
    """Maximum number of calls in one answer; further ones are not run."""
    actions: int | None = None
    """Maximum number of answers in a mission that ask for calls one right after the other; see ``runaway``."""
    deadline_s: float | None = None
    """The time in s after which a mission is ended, its calls with it."""
    max_tokens: int | None = None
    """Maximum number of tokens of a mission and its sub-missions, in both directions."""
    tools: int | None = None
    """Maximum number of tools in one request: more are warned of."""


WORD_BY_WORD = ModelLimits()
"""The limits of the offline model, which does what the operator says, and nothing on its own account."""
LANGUAGE_MODEL = ModelLimits(
    motions=2, calls_per_answer=8, actions=100, deadline_s=8 * 3600.0, max_tokens=5_000_000, tools=128
)
"""The limits of a language model: a shift of patrolling fits; a model that has lost its way is ended in seconds or by
its bill."""
SCRIPTED = LANGUAGE_MODEL.model_copy(update={"max_tokens": None})
"""The limits of a script, which stands for a language model and has no bill."""


class LoopLimits(FixedLimits, ModelLimits):
    """All that limits a loop while it asks one model. None means no limit."""

    max_iterations: int = 20
    """Maximum number of the model's answers in one turn."""
    answer_timeout_s: float = 10.0
    """The time in s to wait for a call's first update or close; then the model is informed that the call goes on."""


def suitable_limits(model: str) -> ModelLimits:
    """Return what suits a model of that name; whatever is not known to be harmless counts as a language model."""
    if model == "offline":
        return WORD_BY_WORD
    return SCRIPTED if model.startswith("scripted:") else LANGUAGE_MODEL


def resolved(value: T | Auto, default: T) -> T:
    """Return a setting, or the default of the model's kind if it is ``auto``."""
    return default if isinstance(value, str) else value
