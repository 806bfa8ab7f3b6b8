"""The policy of a skill: what it states about itself besides its signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from dimos_streams.common.names import MAX_NAME
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill.tags import Tags

OnDuplicate = Literal["allow", "reject", "replace", "confirm"]
DuplicateScope = Literal["name", "arguments"]
Audience = Literal["everyone", "operator", "bridge"]
Approval = Literal["never", "ask"]
OnLoss = Literal["stop", "continue"]

ODOM = "odom"
"""The frame in which robots know where they are."""
BASE = "base"
"""The resource that every call holds that moves the robot's base."""
MAX_RESOURCES = 32
"""Maximum number of resources that one skill may name."""
ResourceName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
"""The name of a resource, which is any text; on the bus a namespace stands before it."""


class SkillTraits(FrozenModel):
    """The part of a skill's policy that callers may know. Each trait is defined here and nowhere else: authors state
    it, heartbeats carry it, and the bridge and agents read it."""

    resources: tuple[ResourceName, ...] = Field(default=(), max_length=MAX_RESOURCES)
    """Resources that a call holds, exclusively, from its beginning to its close."""
    tags: Tags = ()
    """Words by which agents' configs choose skills (``tag:safe``)."""
    on_duplicate: OnDuplicate = "allow"
    """What becomes of a second call while one runs: both run (``allow``), it is refused (``reject``), it ends the
    first and takes its place (``replace``), or it is refused until its caller says which (``confirm``)."""
    duplicate_scope: DuplicateScope = "name"
    """The calls that count as a second one: any of the same skill, or only one with equal arguments."""
    audience: Audience = "everyone"
    """The callers that it is for. Skills for operators are neither offered to models nor begun by skills or agents;
    all others may call them. A skill for the bridge makes its module an agent, see ``tool_stream/review.py``."""
    motion: bool = False
    """True if it moves the robot."""
    concurrent: bool = False
    """True if it only senses, which leaves nothing to take back: a model's calls of such skills may run beside each
    other."""
    read_only: bool = False
    """True if its author vouches that a call changes nothing, in the robot or elsewhere, and begins or ends no other
    call. Some clients run such skills without asking anybody."""
    reversible: bool = True
    """True if its effect can be taken back, by ``undo`` or by other calls; False if not, as for a dropped parcel."""
    undo: str = ""
    """The skill of the same module that takes a call back; it takes that call's ``arguments`` and ``result``. Callers
    see its public name. Empty if there is none."""
    frame: str = Field(default=ODOM, min_length=1)
    """The frame of the arguments ``x`` and ``y`` of a motion. Restricted zones are known in ``odom`` only."""
    approval: Approval = "never"
    """``ask`` if an operator has to approve a model's call of it before it begins."""
    polling: bool = False
    """True if calling it again and again with the same arguments is ordinary, not a loop."""
    protected: bool = False
    """True if no duplicate may take the place of a running call of it."""
    on_loss: OnLoss = "stop"
    """What becomes of a moving call whose events nobody acknowledges any more, since a link is cut: it ends
    (``stop``) or goes on (``continue``). Its caller may say otherwise."""

    @property
    def moves(self) -> bool:
        """True if a call moves the robot by what its author says: it is a motion, or it holds a base."""
        return self.motion or any(resource.rpartition("/")[2] == BASE for resource in self.resources)

    @property
    def may_move(self) -> bool:
        """True if a call may move the robot, for all that is known: it is a motion, or it holds anything.

        This is for code that has to be sure that nothing moves: a call that holds an arm and is not declared a motion
        may still move it.
        """
        return self.motion or bool(self.resources)

    @property
    def senses(self) -> bool:
        """True if a call leaves nothing to take back, by what its author says."""
        return self.concurrent or self.read_only

    def are_duplicates(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether two calls of the skill with these arguments count as duplicates of each other."""
        return self.duplicate_scope == "name" or one == other


class SkillPolicy(SkillTraits):
    """The policy that ``@skill(…)`` states: the traits, and what concerns only the module that has the skill."""

    time_limit_s: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    """The time in s after which a call is ended with outcome ``timed_out``, or None if it may take any time."""
    name: str = ""
    """Its public name if that can't be the method's; empty for the method's name."""

    def model_post_init(self, context: Any) -> None:
        """Raise ``TypeError`` for a policy that contradicts itself."""
        others = {"motion=True": self.motion, "resources": self.resources, "undo": self.undo}
        stated = [name for name, given in (*others.items(), ("reversible=False", not self.reversible)) if given]
        if self.senses and stated:
            trait = "read_only" if self.read_only else "concurrent"
            raise TypeError(f"a skill can't be {trait} with {', '.join(stated)}: it would change something")
        if self.undo and not self.reversible:
            raise TypeError(f"undo={self.undo!r} would never run with reversible=False: state one of them")
