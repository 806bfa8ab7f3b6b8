"""The policy of a skill: what it states about itself besides its signature."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from dimos_streams.skill.tags import Tags

OnDuplicate = Literal["allow", "reject", "replace", "confirm"]
DuplicateScope = Literal["name", "arguments"]
Audience = Literal["everyone", "operator", "bridge"]
Approval = Literal["never", "ask"]
OnLoss = Literal["stop", "continue"]

BASE = "base"
"""The resource that everything holds which moves the robot's base."""


class SkillTraits(BaseModel):
    """What callers may know of a skill's policy. Of each trait there is one definition, this one: authors state it,
    heartbeats carry it, and the bridge and agents read it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    resources: tuple[str, ...] = ()
    """Resources that a call holds, exclusively, from its beginning to its close."""
    tags: Tags = ()
    """Words by which agents' configs choose skills (``tag:safe``)."""
    on_duplicate: OnDuplicate = "allow"
    """The fate of a second call while one runs: both run, it is refused, it takes over, the caller chooses."""
    duplicate_scope: DuplicateScope = "name"
    """The calls that count as a second one: any of the same skill, or only one with equal arguments."""
    audience: Audience = "everyone"
    """Skills for operators are neither offered to models nor begun by skills or agents; other callers may call them.
    One for the bridge makes its module an agent, see ``tool_stream/review.py``."""
    motion: bool = False
    """It moves the robot."""
    concurrent: bool = False
    """It only senses: a model's calls of such skills may run beside each other."""
    read_only: bool = False
    """Its author vouches that a call changes nothing, in the robot or elsewhere, and begins or ends no other call.
    Some clients run such skills without asking anybody."""
    reversible: bool = True
    """Its effect can be taken back, by ``undo`` or by other calls; False for what can't, a dropped parcel."""
    undo: str = ""
    """A skill of the same module that takes a call back; it takes that call's ``arguments`` and ``result``. Callers
    see its public name, empty if there is none."""
    approval: Approval = "never"
    """Whether an operator is asked before a model's call of it runs."""
    polling: bool = False
    """To call it again and again with the same arguments is ordinary, not a loop."""
    protected: bool = False
    """No duplicate replaces a call of it that runs."""
    on_loss: OnLoss = "stop"
    """The fate of a moving call that nobody acknowledges any more, because a link is cut; its caller may say
    otherwise."""

    @property
    def moves(self) -> bool:
        """Whether a call moves the robot by what its author says: it is a motion, or it holds a base."""
        return self.motion or any(resource.rpartition("/")[2] == BASE for resource in self.resources)

    @property
    def may_move(self) -> bool:
        """Whether a call may move the robot, for all that is known: it is a motion, or it holds anything.

        What has to be sure that nothing moves goes by this: whoever holds an arm and does not call it a motion may
        still move it.
        """
        return self.motion or bool(self.resources)


class SkillPolicy(SkillTraits):
    """What ``@skill(…)`` states: the traits, and what concerns only the module that has the skill."""

    time_limit_s: float | None = None
    """A call that runs longer is ended with outcome ``timed_out``."""
    name: str = ""
    """Its public name where that can't be the method's; empty for the method's name."""

    def model_post_init(self, context: Any) -> None:
        """Raises ``TypeError`` for what contradicts itself."""
        others = {"motion=True": self.motion, "resources": self.resources, "undo": self.undo}
        stated = [name for name, given in (*others.items(), ("reversible=False", not self.reversible)) if given]
        if self.read_only and stated:
            raise TypeError(f"a skill can't be read_only with {', '.join(stated)}: it would change something")
