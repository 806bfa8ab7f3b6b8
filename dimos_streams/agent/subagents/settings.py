"""The settings of a sub-agent, as a blueprint gives them."""

from __future__ import annotations

from dimos_streams.agent.policies.skill_selection import ALL, SkillList
from dimos_streams.common.schemas.frozen_model import FrozenModel


class SubAgent(FrozenModel):
    """A sub-agent: what it is for, and what it may use."""

    description: str
    """A description of what it is for; the model that delegates reads it."""
    prompt: str
    """Its system prompt."""
    skills: SkillList = (ALL,)
    """The skills of its parent that it gets, listed like the agent's own ``skills``."""
    model: str = ""
    """The name of its model; empty for its parent's."""
