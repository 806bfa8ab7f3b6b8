"""The settings of the gates, as a blueprint gives them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from dimos_streams.agent.missions.limits import LANGUAGE_MODEL, Auto, resolved
from dimos_streams.agent.policies.gates.matching.patterns import checked_pattern
from dimos_streams.agent.policies.gates.matching.zones import Zone
from dimos_streams.agent.policies.skill_selection import ALL, SkillList
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill import OnDuplicate


class ApprovalRule(FrozenModel):
    """A rule for calls that match it. Of several rules the first that matches counts."""

    skill: str = "*"
    """The skill's name, looked up from where the agent is; ``*`` and ``?`` stand for anything."""
    arguments: dict[str, Annotated[Any, AfterValidator(checked_pattern)]] = Field(default_factory=dict)
    """Patterns of arguments: a value; a text with ``*`` or ``?``; or comparisons that must all hold, ``">2"``,
    ``"!=0"``, ``">=-1 <=1"``.

    An argument that the call leaves out has its default; without one it does not match. ``target.x`` names a value
    within an object.
    """
    action: Literal["ask", "allow", "deny"] = "ask"
    """What becomes of a call that matches: an operator is asked, it passes unasked, or it is refused."""
    reason: str = ""
    """A text for the operator who is asked, or for the model that is denied."""

    def __str__(self) -> str:
        patterns = ", ".join(f"{name} {pattern}" for name, pattern in self.arguments.items())
        does = {"ask": "ask before", "allow": "allow", "deny": "refuse"}[self.action]
        whose = "every skill" if self.skill == "*" else self.skill
        return f"this agent is set to {does} {whose}{f' with {patterns}' if patterns else ''}"


class ApprovalSettings(FrozenModel):
    """The settings of the approval gate."""

    rules: tuple[ApprovalRule, ...] = ()
    """The rules, which come before what skills themselves declare (``@skill(approval="ask")``)."""
    timeout_s: float | None = Field(default=300.0, gt=0)
    """The time in s for a decision; after it the call is denied. None waits for ever."""
    max_pending: int = Field(default=100, ge=1)
    """Maximum number of calls that wait for a decision; further ones are denied at once."""
    on_console_loss: Literal["continue", "hold", "abort"] = "continue"
    """The policy while no operator's console is connected any more: time runs on, time stands still, or all is
    denied."""


class PlanSettings(FrozenModel):
    """The settings of the plan gate."""

    motions: Annotated[int, Field(ge=0)] | Auto | None = "auto"
    """The number of motions that may begin in one mission without an approved plan; None for any number, ``auto`` for
    what suits the model: two for language models."""
    valid_s: float = Field(default=3600.0, gt=0)
    """The time in s for which an approval holds."""

    def free(self) -> int | None:
        """The number of motions that may begin without a plan, for a language model; None for any number."""
        return resolved(self.motions, LANGUAGE_MODEL.motions)


class GateSettings(FrozenModel):
    """The settings of all gates."""

    gates: tuple[str, ...] = ()
    """The user's own gates, ``"package.module:Class"``."""
    skills: SkillList = (ALL,)
    """The skills that the agent gets: names, patterns with ``*`` and ``?``, ``tag:NAME``, and exceptions, ``!drive``,
    which hold wherever they stand."""
    disabled_skills: tuple[str, ...] = ()
    """Skills that are not to be used until an operator enables them."""
    duplicates: dict[str, OnDuplicate] = Field(default_factory=dict)
    """The fate of a second call while one runs, by skill, instead of what the skill declares."""
    zones: tuple[Zone, ...] = ()
    """The parts of the floor that need an approved plan."""
    plan: PlanSettings = PlanSettings()
    approval: ApprovalSettings = ApprovalSettings()
