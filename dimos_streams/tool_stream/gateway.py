"""The protocol of what agents and operators' tools need from a bridge; over HTTP or, in one process, directly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypedDict, Unpack, runtime_checkable

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.skill import OnDuplicate, OnLoss, SkillInfo
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.close_data import TO_END

ENDS_ITS_OWN = (
    ", and what a model asks for takes the place of calls of its own agent only: an operator can end that one"
)
"""The end of the refusal of a call that was to take the place of somebody else's."""

MAX_ENDED_AT_ONCE: Final = 1000
"""Maximum number of calls that one request may ask to end."""


def theirs_to_end(call: CallView, instead: str) -> str:
    """Return the refusal to end somebody else's call; ``instead`` is how motion is stopped all the same."""
    return (
        f"call {call.call_id!r} of {call.skill!r} was begun by {call.caller!r}, and is theirs to end; to stop motion,"
        f" whoever has begun it, {instead}"
    )


@dataclass(slots=True)  # frozen for type checkers, as its event is
class JournalEntry:
    """An event and its offset in the journal. Offsets grow; the SSE id is the offset."""

    offset: Final[int]
    event: Final[ToolEvent]


class OfferedSkill(SkillInfo):
    """A skill with the module that offers it at the moment."""

    module: str
    available: bool
    """False while the module does not answer."""
    agent: bool = False
    """True if the module is an agent, which it declares by a skill for reviews (``tool_stream/review.py``)."""
    robot: str | None = Field(default=None, exclude_if=lambda robot: robot is None)
    """The robot that has it; only a hub tells it."""
    shadowed: tuple[OfferedSkill, ...] = Field(default=(), exclude_if=lambda shadowed: not shadowed)
    """The skills of that name of other modules, which get no calls as long as this one does."""

    @property
    def asks(self) -> bool:
        """True if an operator is asked before a model's call. Which module a call will reach is not certain: one that
        does not answer now may do so when the call begins."""
        return any(skill.approval == "ask" for skill in (self, *self.shadowed))

    @property
    def may_be_motion(self) -> bool:
        """True if a call is a motion, whichever of the modules it reaches."""
        return any(skill.motion for skill in (self, *self.shadowed))


CallPhase = Literal["requested", "open", "closed"]
"""``requested``: not yet begun by its module."""


class CallView(FrozenModel):
    """A call as the broker knows it."""

    call_id: str
    skill: str
    module: str
    caller: str
    parent: str
    arguments: dict[str, Any]
    state: CallPhase
    outcome: Outcome | None = None
    answer: str | None = None
    """The text of the first update, or of the close if there was none; None before."""
    text: str = ""
    """The newest event's text."""
    result: Any = None
    last_seq: int = 0
    resources: tuple[str, ...] = ()
    on_loss: OnLoss = "stop"
    """The policy for when a link is cut."""
    robot: str | None = Field(default=None, exclude_if=lambda robot: robot is None)
    """The robot whose call it is; only a hub tells it."""
    requested_utime: int = 0
    """Time of the request, µs since the Unix epoch, by the bridge's clock. Of a call that is known from its events
    only, as at a hub, it is the time of the first one, by its module's clock. 0 if it is not known."""
    closed_utime: int | None = None
    """Time of its close, µs since the Unix epoch, by the clock of its module or of the bridge, whichever closed it.
    If a module's clock gives a time before the request or in the future, it is the time at which the bridge heard of
    the close. None as long as it is not closed."""
    to_end: str | None = Field(default=None, exclude_if=lambda to_end: to_end is None)
    """The reason why it was to end when it failed or was lost; None for any other call."""

    def close_data(self) -> dict[str, Any]:
        """The data of a close that stands for its own."""
        result = {} if self.result is None else {"result": self.result}
        ending = {} if self.to_end is None else {TO_END: self.to_end}
        return {"outcome": Outcome.LOST if self.outcome is None else self.outcome} | result | ending


class CallFacts(Protocol):
    """The facts by which a call is selected: those of a ``CallView``, or of what a bridge remembers of a call."""

    @property
    def call_id(self) -> str: ...
    @property
    def skill(self) -> str: ...
    @property
    def caller(self) -> str: ...
    @property
    def state(self) -> CallPhase: ...
    @property
    def robot(self) -> str | None: ...


class CallTerms(TypedDict, total=False):
    """The terms of a call, besides its skill, arguments and caller: keyword arguments of methods that begin calls.
    A term that is None is as one that is left out."""

    on_duplicate: OnDuplicate | None
    """The fate of a second call while one runs; without it the skill decides."""
    idempotency_key: str | None
    """The caller's name for the call: the same key gives the same call, and begins it once."""
    on_loss: OnLoss | None
    """The policy for a cut link, to stop or to go on; without it the skill decides."""
    robot_order: int | None
    """The number of the newest order to stop a robot, or to release it, that its caller knew, see ``robot_orders``:
    after a newer one a call that may move the robot does not begin, however late its request comes."""


@runtime_checkable
class SkillGateway(Protocol):
    """Access to the skills of a bridge, its calls and their events, over HTTP or within one process."""

    async def skills(self) -> list[OfferedSkill]:
        """Return the skills that modules offer now: one of each name, the one that a call of it reaches."""

    async def call(self, skill: str, arguments: Mapping[str, Any], *, caller: str, **terms: Unpack[CallTerms]) -> str:
        """Begin a call and return its id. Its events tell what becomes of it.

        Raises ``UnknownSkillError``, ``SkillArgumentError``, ``CallRejectedError`` (busy, duplicate) or
        ``SkillUnavailableError``. The same idempotency key gives the same call; it raises ``CallRejectedError`` if
        skill, arguments or ``on_loss`` differ.
        """

    async def cancel(self, call_id: str, reason: str) -> None:
        """Ask a call to end. A closed call is fine; raises ``UnknownCallError`` for an unknown one."""

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        """Ask calls to end, however many, in as few requests as that takes, and don't wait for their ends. Those that
        are not known any more have ended. A request that fails keeps none of the others from being made."""

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        """Return the calls that the broker remembers, oldest first."""

    async def offset(self) -> int:
        """Return the journal's newest offset, or 0 if it is empty."""

    async def robot_orders(self) -> Mapping[str, int]:
        """Return the number of each robot's newest order to stop, or to be released; see ``newest_order``."""

    def events(
        self, *, after: int, caller: str | None = None, call_id: str | None = None
    ) -> AsyncIterator[JournalEntry]:
        """Yield each event once, in order, from the first behind offset ``after``, for ever.

        ``gap`` events stand for what can't be had any more. Close the iterator to stop.
        """
