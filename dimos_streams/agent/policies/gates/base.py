"""The protocols between the loop and its gates: what is asked before a call, and the verdict on it.

A model's call of a skill goes through the one ``Reviewer`` (``gates/chain.py``):

    verdict = await chain.review(request)
    if isinstance(verdict, Refuse):            # its text is the result of the call, an error
        ...
    ...
    refusal = await verdict.last_look()           # pause, step mode and the world once more
    ...                                           # nothing is awaited between that look and the call
    try:
        call = await calls.start(skill, verdict.arguments, context, on_duplicate=verdict.on_duplicate)
    except SkillError:
        verdict.give_back()                    # the call did not begin: nothing of a plan or of a budget is used up
    text = "\\n".join(part for part in (verdict.note, answer) if part)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from dimos_streams.agent.models.protocol import ToolSchema
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.gateway import OfferedSkill


def nothing() -> None:
    """Do nothing: for an ``Allow`` with nothing to give back."""


def no_objection(arguments: Mapping[str, Any]) -> Refuse | None:
    """Return None: for an ``Allow`` that nothing in the world can change."""
    return None


async def nothing_newer() -> None:
    """Do nothing: for an ``Allow`` that knows all that there is to know."""


class Permit(Protocol):
    """The operator's permit for a call to begin: it may have to be waited for, and may end before the call begins."""

    @property
    def holds(self) -> bool:
        """True if the call may begin now."""

    async def wait(self) -> None:
        """Wait until the call may begin. When this returns it may, until the caller awaits something."""


class _Granted:
    holds: bool = True

    async def wait(self) -> None: ...


GRANTED: Permit = _Granted()
"""The permit of an ``Allow`` in which no operator has a say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A call that a model asks for, with arguments that fit the skill's schema."""

    skill: OfferedSkill
    arguments: Mapping[str, Any]
    missions: tuple[str, ...] = ()
    """The ids of the missions that it belongs to."""
    tool_call_id: str = ""
    iteration: int = 0
    """The number of the turn's answer that asks for it, counted from 1."""
    on_duplicate: OnDuplicate | None = None
    """The fate that the caller asks for where a duplicate runs; None leaves it to the skill."""
    parent: str = ""
    """The id of the call whose skill asks for this one on the model's behalf; empty if the model asks itself."""
    authored: bool = False
    """True if that skill runs it as a part of its own, and has not got its name from its caller."""
    part_of_motion: bool = False
    """True if it is a child of a call that moves the robot and has passed the gates as such."""
    planned: bool = False
    """True once a gate has let it pass as a step of an approved plan."""


@dataclass(frozen=True, slots=True)
class Allow:
    """The verdict that the call may begin, with these arguments."""

    arguments: Mapping[str, Any]
    on_duplicate: OnDuplicate | None = None
    give_back: Callable[[], None] = nothing
    """Called if the call does not begin after all."""
    note: str = ""
    """A text that the model sees before the call's result, for instance that an operator has changed the
    arguments."""
    again: Callable[[Mapping[str, Any]], Refuse | None] = no_objection
    """Judges once more what depends on the world, right before the call begins, with the arguments that it then has;
    returns a refusal if it must not begin after all. It neither waits nor uses anything up, and may be called
    often."""
    permit: Permit = GRANTED
    """The operator's permit, which a pause or step mode takes back until the call has begun."""
    refresh: Callable[[], Awaitable[None]] = nothing_newer
    """Asks the bridge for what ``again`` judges by, its skills."""
    planned: bool = False
    """True if it may because it is a step of an approved plan."""

    @property
    def stands(self) -> bool:
        """True if the call may still begin, as what is known here has it."""
        return self.permit.holds and self.again(self.arguments) is None

    async def last_look(self) -> Refuse | None:
        """Wait until the operator lets the call begin, then judge the world once more; return a refusal, or None.

        Every call is looked at in this way right before it begins, however it came about, and again after all that
        waits. When this returns it holds until the caller awaits something.
        """
        while True:
            await self.permit.wait()
            await self.refresh()
            if self.permit.holds:
                return self.again(self.arguments)


@dataclass(frozen=True, slots=True)
class Refuse:
    """The verdict that the call does not begin. ``text`` is what the model is shown: why, and what it can do
    instead."""

    text: str
    charged: bool = True
    """True if it counts as a failed call (towards consecutive errors)."""


Verdict: TypeAlias = Allow | Refuse


class Gate(Protocol):
    """Decides on calls. It may wait, for instance for an operator; it must stand being cancelled while it does.

    Users' gates are named in the agent's config (``gates: ["package.module:Class"]``) and made without arguments.
    """

    async def review(self, request: CallRequest) -> Verdict:
        """Return whether the call may begin, and with which arguments. Raises nothing but ``CancelledError``."""


class Reviewer(Protocol):
    """Reviews calls by all gates at once: ``gates.chain.GateChain``."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The sub-agents whose lists it holds calls to as well, the outermost first; none for the agent's own."""

    async def review(self, request: CallRequest) -> Verdict:
        """Return the first refusal, or an ``Allow`` with what all gates have made of the arguments."""

    def tool(self, skill: OfferedSkill) -> ToolSchema | None:
        """Return the skill as a model is offered it, or None if it is not to be offered."""
