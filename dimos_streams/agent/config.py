"""The settings of an agent, as a blueprint gives them."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from dimos_streams.agent.context.settings import ResultSettings
from dimos_streams.agent.control.stop_words import StopWordSettings
from dimos_streams.agent.missions.limits import Auto, FixedLimits, LoopLimits, ModelLimits, resolved, suitable_limits
from dimos_streams.agent.missions.stop_conditions import (
    StopCondition,
    battery_below,
    goal_reached,
    load_condition,
    outside,
)
from dimos_streams.agent.models.model_options import ModelOptions
from dimos_streams.agent.policies.gates.settings import GateSettings
from dimos_streams.agent.policies.repetition import RepetitionSettings
from dimos_streams.agent.subagents.settings import SubAgent
from dimos_streams.common.polygon import Point, with_inside
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.schemas.http_url import checked_http_url
from dimos_streams.module import ModuleConfig

SYSTEM_PROMPT = """\
You control a robot through skills. Call a skill when the operator asks for something that it does. Some skills go \
on after they have answered; their updates reach you as data that names the call. Tell the operator briefly what \
happens. If something fails, say why. If there is nothing to add, answer with nothing."""

_DEFAULTS = LoopLimits()


class Goal(FrozenModel):
    """A point of the odom frame, and the distance at which it counts as reached, in metres."""

    x: float
    """Metres."""
    y: float
    """Metres."""
    within_m: float = Field(default=0.3, gt=0)
    """The distance in metres at which it counts as reached."""


class LimitSettings(FixedLimits):
    """The limits of how far the agent may go. None means no limit, ``auto`` the one that suits the model
    (``missions/limits.py``)."""

    deadline_s: Annotated[float, Field(gt=0)] | Auto | None = "auto"
    """The time in s after which a mission is ended, its calls with it."""
    max_tokens: Annotated[int, Field(ge=1)] | Auto | None = "auto"
    """Maximum number of tokens of a mission with its sub-missions, in both directions."""
    calls_per_answer: Annotated[int, Field(ge=1)] | Auto | None = "auto"
    """Maximum number of calls in one answer; further ones are not run, and the model is informed."""
    actions: Annotated[int, Field(ge=1)] | Auto | None = "auto"
    """Maximum number of answers in a mission that ask for calls one right after the other, without a word of the
    operator. A mission that uses them up is ended, its calls with it."""
    tools: Annotated[int, Field(ge=1)] | Auto | None = "auto"
    """Maximum number of tools that the model's server takes, skills and the agent's own together: more are warned
    of."""


class StopWhen(FrozenModel):
    """Conditions under which a mission stops, whatever its model still wants."""

    battery_below: float | None = Field(default=None, gt=0, le=1)
    """The charge of the battery, 0 to 1, below which missions stop."""
    goal: Goal | None = None
    outside: Annotated[tuple[Point, ...], Field(min_length=3), AfterValidator(with_inside)] | None = None
    """A fence: its corners in the odom frame, in metres."""
    conditions: tuple[str, ...] = ()
    """The user's own conditions, ``"package.module:function"``; see ``stop_conditions.StopCondition``."""

    def all(self) -> tuple[StopCondition, ...]:
        """The conditions, ready to be asked. Raises ``UserError`` for one that can't be imported."""
        found: list[StopCondition] = []
        if self.battery_below is not None:
            found.append(battery_below(self.battery_below))
        if self.goal is not None:
            found.append(goal_reached(self.goal.x, self.goal.y, self.goal.within_m))
        if self.outside is not None:
            found.append(outside(self.outside))
        return (*found, *map(load_condition, self.conditions))


class AgentConfig(GateSettings, ModuleConfig):
    """The settings of the module ``Agent``."""

    model: str = "offline"
    """``"offline"`` (commands, no LLM), ``"scripted:FILE"`` or ``"openai:MODEL"``."""
    base_url: Annotated[str, AfterValidator(checked_http_url)] | None = None
    """The address of an ``openai`` model's server; its key comes from the environment."""
    model_options: ModelOptions = ModelOptions()
    system_prompt: str = SYSTEM_PROMPT
    """The text that the model is given first."""
    max_iterations: int = Field(default=_DEFAULTS.max_iterations, ge=1)
    """Maximum number of the model's answers in one turn."""
    answer_timeout_s: float = Field(default=_DEFAULTS.answer_timeout_s, gt=0)
    """The time in s to wait for a call's first update or close; then the model is informed that the call goes on."""
    limits: LimitSettings = LimitSettings()
    stop_when: StopWhen = StopWhen()
    results: ResultSettings = ResultSettings()
    repetition: RepetitionSettings = RepetitionSettings()
    call_tools_always: bool = False
    """True if ``list_calls`` and ``cancel_call`` are offered also while nothing runs, for a stable prompt."""
    agents: dict[str, SubAgent] = Field(default_factory=dict)
    """Sub-agents that the agent may give tasks to, by name."""
    queue_capacity: int = Field(default=1000, ge=1)
    """Maximum number of messages that wait in the agent's queue."""
    conversation_entries: int = Field(default=1000, ge=10)
    """Maximum number of entries of the record that are kept in memory."""
    missions_kept: int = Field(default=1000, ge=1)
    """Maximum number of missions whose files are kept."""
    stop_words: StopWordSettings = StopWordSettings()
    """The operators' input that ends everything at once; no model is asked about it."""
    typing_bound_s: float = Field(default=10.0, gt=0)
    """The longest time in s that the agent waits for an operator who is in the middle of a sentence."""

    @model_validator(mode="after")
    def _cost_needs_a_price(self) -> Self:
        if self.limits.max_cost is not None and self.model_options.pricing is None:
            raise ValueError(
                f"limits.max_cost is {self.limits.max_cost:g}, but no price is known: "
                "set model_options.pricing, or limits.max_tokens instead"
            )
        return self

    def model_limits(self, model: str) -> ModelLimits:
        """The limits that depend on the model, while that one is asked."""
        stated = {**dict(self.limits), "motions": self.plan.motions}
        return ModelLimits(**{name: resolved(stated[name], suits) for name, suits in suitable_limits(model)})

    def loop_limits(self, model: str = "") -> LoopLimits:
        """The loop's limits for a model, by default the config's."""
        stated = {**dict(self), **dict(self.limits), **dict(self.model_limits(model or self.model))}
        return LoopLimits(**{name: stated[name] for name in LoopLimits.model_fields})
