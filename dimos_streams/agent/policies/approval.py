"""One approval: a call that waits for an operator's decision, and the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.policies.canonical import canonical, exactly, shown
from dimos_streams.agent.policies.decision_time import DecisionTime
from dimos_streams.errors import ConflictError
from dimos_streams.operator.messages.agent import ApprovalState, ApprovalView

Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A check that returns the arguments with the defaults of what they leave out. Raises ``SkillError`` for arguments
that do not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision on an approval."""

    approved: bool
    rejected: bool = False
    """True if an operator has said no, which binds; what nobody has decided is neither approved nor rejected."""
    arguments: Mapping[str, Any]
    """The arguments to use; an operator may have changed them."""
    changed: bool = False
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class Approval:
    """A call that waits, or has waited, for the decision."""

    id: str
    skill: str
    module: str
    asked: Mapping[str, Any]
    arguments: Mapping[str, Any]
    reason: str
    missions: tuple[str, ...]
    check: Check
    decided: asyncio.Future[None]
    created_utime: int
    revision: int = 1
    """The number of its version, one more whenever its arguments change: an operator who approves names the one they
    saw."""
    time: DecisionTime = field(default_factory=DecisionTime)
    state: ApprovalState = "pending"
    why: str = ""
    """The operator's reason for the decision."""
    decided_by: str = ""
    call_id: str = ""
    call_end: str = ""
    is_over: bool = False
    """True if somebody else than the agent has ended the call that it let begin, or an operator has stopped the robot
    since: it lets no other one begin."""
    waiters: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """The key by which the same call is known: of the same module, since a skill of another one may do something
        else under its name."""
        return self.module, self.skill, canonical(self.asked)

    def allows(self, key: tuple[str, str], missions: Sequence[str]) -> bool:
        """Return whether it has let a call of these missions begin. The call that has asked for that one may have
        changed hands between a mission and its sub-missions."""
        if self.state != "approved" or key != (self.skill, canonical(self.arguments)):
            return False
        return not self.missions or not set(roots(self.missions)).isdisjoint(roots(missions))

    @property
    def holds_again(self) -> bool:
        """True if its decision holds for the same call of the same missions."""
        final = self.state == "rejected" or (self.state == "approved" and not self.decision().changed)
        return final and bool(self.missions) and not self.is_over

    def decision(self) -> Decision:
        """Return the decision on it."""
        changed = exactly(self.arguments) != exactly(self.asked)
        return Decision(
            approved=self.state == "approved",
            rejected=self.state == "rejected",
            arguments=self.arguments,
            changed=changed,
            reason=self.why,
        )

    def check_same(self, state: ApprovalState, arguments: Mapping[str, Any] | None) -> None:
        """Raise ``ConflictError`` if it was decided in another way, or has other arguments; None stands for any
        arguments."""
        if state != self.state:
            raise self._refusal(f"be {state.replace('_', ' ')}")
        if arguments is not None and exactly(self.check(arguments)) != exactly(self.arguments):
            raise self._refusal(f"become {shown(self.skill, arguments)}")

    def check_seen(self, revision: int | None, arguments: Mapping[str, Any] | None) -> None:
        """Raise ``ConflictError`` for another revision than the present one, unless the arguments that come with it
        are the present ones anyway; None stands for any revision."""
        if revision in (None, self.revision):
            return
        if arguments is not None and exactly(self.check(arguments)) == exactly(self.arguments):
            return
        state = "waits" if self.state == "pending" else f"is {self.view('').decision}"
        raise ConflictError(
            f"approval {self.id!r} has revision {self.revision}, not {revision}: {shown(self.skill, self.arguments)}"
            f" {state}; to decide on that one, name {self.id}@{self.revision}"
        )

    def _refusal(self, change: str) -> ConflictError:
        """Return the refusal of a change that comes after the decision; it says what holds."""
        view = self.view("")
        then = f"; {view.consequence}" if view.consequence else ""
        what = shown(self.skill, self.arguments)
        return ConflictError(f"approval {self.id!r} of {what} is {view.decision}: it can't {change} any more{then}")

    def view(self, agent: str) -> ApprovalView:
        """Return it as operators of an agent see it."""
        return ApprovalView(
            id=self.id,
            agent=agent,
            skill=self.skill,
            module=self.module,
            arguments=dict(self.arguments),
            revision=self.revision,
            reason=self.reason,
            missions=self.missions,
            state=self.state,
            created_utime=self.created_utime,
            expires_utime=self.time.expires_utime,
            decided_by=self.decided_by,
            why=self.why,
            call_id=self.call_id,
            call_end=self.call_end,
        )
