"""The protocols between the loop and its policies: gates before a call, and what watches and shapes around them.

A model's call of a skill goes through the one ``Reviewer`` (``gates/chain.py``):

    verdict = await chain.review(request)
    if isinstance(verdict, Refuse):            # its text is the result of the call, an error
        ...
    ...
    refusal = await verdict.last_look()           # pause, step mode and the world once more
    ...                                           # nothing is awaited between that look and the call
    try:
        call = await calls.start(skill, verdict.arguments, missions, on_duplicate=verdict.on_duplicate)
    except SkillError:
        verdict.give_back()                    # the call did not begin: nothing of a plan or of a budget is used up
    text = "\\n".join(part for part in (verdict.note, answer) if part)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.missions.end_state import cancelled_by_another, has_failed
from dimos_streams.agent.models.protocol import Speaker, ToolSchema
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import OfferedSkill


class Emit(Protocol):
    """Writes what policies do to the agent's event log."""

    def __call__(self, kind: str, missions: Sequence[str] = (), **data: Any) -> object:
        """Log an event; ``data`` is JSON."""


def nothing() -> None:
    """Do nothing: for an ``Allow`` with nothing to give back."""


def no_objection(arguments: Mapping[str, Any]) -> Refuse | None:
    """Return None: for an ``Allow`` that nothing in the world can change."""
    return None


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

    async def last_look(self) -> Refuse | None:
        """Wait until the operator lets the call begin, then judge the world once more; return a refusal, or None.

        Every call is looked at in this way right before it begins, however it came about, and again after all that
        waits. When this returns it holds until the caller awaits something.
        """
        await self.permit.wait()
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


AGENTS = "agents"
"""The key of an event's data about a call that names the sub-agents whose lists it is held to."""


def whose_list(reviewer: Reviewer) -> dict[str, list[str]]:
    """Return the sub-agents whose lists a reviewer's calls are held to, as data of their events; empty if there are
    none."""
    return {AGENTS: list(reviewer.agents)} if reviewer.agents else {}


@dataclass(frozen=True, slots=True)
class Warn:
    """An alarm that the model repeats itself: people are informed."""

    text: str


@dataclass(frozen=True, slots=True)
class Hint:
    """An alarm that the model repeats itself: people are informed, and the text is added to what it sees next."""

    text: str


@dataclass(frozen=True, slots=True)
class StopTurn:
    """An alarm that the model repeats itself: the turn ends, and what it asks for is not run. ``text`` is why."""

    text: str


Alarm: TypeAlias = Warn | Hint | StopTurn


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of one call that the model asked for, as it is shown: of a skill or of a local tool."""

    text: str
    is_error: bool = False
    call: OpenCall | None = None
    """The skill's call, or None if none was begun."""
    event: ToolEvent | None = None
    """The event that answered it, or None if none did."""
    charged: bool = True
    """True if an error counts as a failed call."""
    note: str = ""
    """A remark of the agent itself on the call, before the text."""
    speaker: Speaker = "data"
    """``operator`` if the text is what an operator has answered."""

    @property
    def failed(self) -> bool:
        """True if the call, or the attempt to begin it, has failed; one that somebody has cancelled has not."""
        return has_failed(self.text, self.event, is_error=self.is_error)

    @property
    def cancelled(self) -> str:
        """See ``cancelled_by_another``."""
        return cancelled_by_another(self.event, by_agent=self.call is not None and bool(self.call.asked_to_end))
