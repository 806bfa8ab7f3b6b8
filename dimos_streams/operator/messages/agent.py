"""The reports of an agent: its events, one by one, and its whole state at one moment.

An agent's operator skill ``report`` is a call that never ends by itself: each ``AgentEvent`` is one of its updates,
each ``AgentSnapshot`` one of its progresses (``reporting.py`` packs and unpacks them). The monitor in the bridge
holds such a call open as long as somebody watches, and informs all watchers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.operator.messages.kept_report import KeptReport

ApprovalState: TypeAlias = Literal["pending", "approved", "rejected", "deleted", "timed_out"]
DECIDED: Final[Mapping[str, ApprovalState]] = {"approve": "approved", "reject": "rejected", "delete": "deleted"}
"""The states to which operators' decisions lead."""
OnConsoleLoss = Literal["continue", "hold", "abort"]
"""The policy of an agent for when nobody watches any more: go on, pause, or abort."""


class AgentEvent(FrozenModel):
    """Something that happened in an agent."""

    number: int
    """Counts 1..n without holes; an agent that goes on from its record counts on."""
    utime: int
    """µs since the Unix epoch."""
    agent: str
    """The agent module's name."""
    kind: str
    """``state``, ``text``, ``tool_call``, …; the agent's documentation lists them."""
    missions: tuple[str, ...] = ()
    """Ids of the missions (calls of ``say``) that it belongs to."""
    data: dict[str, Any] = Field(default_factory=dict)


class Usage(FrozenModel):
    """The usage of models: for a turn, for a mission, or since the agent's process was started."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """The cost in US dollars, or None if prices are not known."""

    @property
    def tokens(self) -> int:
        """The tokens of both directions."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=sum(known) if known else None,
        )


class QueueView(FrozenModel):
    """The agent's message queue."""

    waiting: int
    capacity: int


class MissionView(FrozenModel):
    """A mission that is not over."""

    id: str
    """The id of the call of ``say`` that it began with."""
    text: str
    """The operator's input, shortened."""
    utime: int
    """The time at which it began, µs since the Unix epoch."""


class ConversationEntry(FrozenModel):
    """One of the newest entries of the conversation, its text shortened."""

    number: int
    """The number of the event that has made it, by which it is known again after a restart of the agent."""
    role: str
    text: str
    utime: int = 0
    skill: str = ""
    call_id: str = ""
    is_error: bool = False
    missions: tuple[str, ...] = ()


class ApprovalView(KeptReport):
    """A call that waits for an operator's decision, or one that was decided on; as the report of a decision, too."""

    id: str
    agent: str
    skill: str
    module: str
    arguments: dict[str, Any]
    """The arguments that the model asked for, or those to which an operator has changed them."""
    revision: int = 1
    """One more whenever an operator changes the arguments; the operator who approves names the one they saw."""
    reason: str = ""
    """The reason why it is asked for (the rule that applies, a plan), and the input of an operator that led to it."""
    missions: tuple[str, ...] = ()
    state: ApprovalState = "pending"
    created_utime: int
    expires_utime: int | None = None
    """The time at which it counts as rejected, or None if it waits for ever."""
    hidden_characters: int = 0
    """Characters of the arguments' JSON that this view leaves out; ``approvals(approval=ID)`` shows more."""

    decided_by: str = ""
    """The caller of ``decide``; empty where nobody has decided."""
    why: str = ""
    """The reason that came with the decision, or why nobody decided."""
    call_id: str = ""
    """The newest call that has begun by it, as far as the agent has heard of it."""
    call_end: str = ""
    """The end of that call, its outcome and text; empty while it runs, and for one that is a part of another."""

    @property
    def reference(self) -> str:
        """The approval at its revision, as people name what they have seen."""
        return f"{self.id}@{self.revision}"

    @property
    def binds(self) -> bool:
        """True if the decision on it holds for what is asked for later, too: a rejection, and one on a plan, whose
        steps it may have changed."""
        return self.state == "rejected" or (self.state == "approved" and not self.module)

    @property
    def decision(self) -> str:
        """Its state as people read it, with who has decided and why."""
        already = "" if self.state == "pending" else " already"
        by = f", by {self.decided_by!r}" if self.decided_by else ""
        because = f" ({self.why})" if self.why else ""
        return f"{self.state.replace('_', ' ')}{already}{by}{because}"

    @property
    def consequence(self) -> str:
        """The state of the call that was approved, in words; empty for one that was not approved, and for a plan."""
        if self.state != "approved" or not self.module:
            return ""
        if not self.call_id:
            return "no call of it has begun"
        return f"call {self.call_id} of it {f'has ended: {self.call_end}' if self.call_end else 'has begun'}"

    def __str__(self) -> str:
        return self.with_unkept(f"{self.id}, a call of {self.skill}, is {self.state.replace('_', ' ')}")


class WaitingCall(FrozenModel):
    """A call that may not begin yet, because the operator has paused the agent or steps through its calls."""

    skill: str
    arguments: dict[str, Any]
    id: str = ""
    """The id by which ``step`` names it."""
    tool_call_id: str = ""
    parent: str = ""
    """The call whose skill asks for it, empty where the model asks itself."""
    hidden_characters: int = 0
    """The number of characters of the arguments' JSON that this view leaves out."""


class RetryView(FrozenModel):
    """An attempt to ask the model that failed, while another attempt will follow."""

    error: str
    """Shortened."""
    attempt: int
    """The number of the attempt that failed, from 1."""
    attempts: int
    """The largest number of attempts."""
    again_utime: int
    """The time at which the next one begins, µs since the Unix epoch."""


class AgentSnapshot(FrozenModel):
    """All that an operator needs to know about an agent, at one moment."""

    agent: str
    utime: int
    number: int
    """Number of the newest event that the snapshot contains, 0 before the first."""
    state: str
    """The state of the loop: ``idle``, ``streaming``, ``executing``, …; the agent's documentation lists them."""
    mode: Literal["running", "paused", "stepping"] = "running"
    """The way in which calls may begin: at once, not at all, or one by one."""
    paused_for: str = ""
    """Why it is paused and who has paused it, as far as they have said so; empty if it is not."""
    hold: HoldView | None = None
    """The answers of the velocity gates while the robot is to be still; None as long as they may just be late."""
    waiting_calls: tuple[WaitingCall, ...] = ()
    """The calls that wait for the operator in step mode, oldest first."""
    model: str
    retry: RetryView | None = None
    """The failure of the model; None as soon as it answers, or is not asked any more."""
    usage: Usage = Usage()
    queue: QueueView
    iteration: int = 0
    """Answers of the model in the present turn."""
    missions: tuple[MissionView, ...] = ()
    calls: tuple[str, ...] = ()
    """Ids of its calls that are open."""
    approvals: tuple[ApprovalView, ...] = ()
    """Those that are pending, oldest first."""
    disabled_skills: tuple[str, ...] = ()
    withheld_skills: tuple[str, ...] = ()
    """Skills near it that its config does not give it."""
    warnings: tuple[str, ...] = ()
    """Possible faults of the skills that it is offered."""
    conversation: tuple[ConversationEntry, ...] = ()
    """The newest entries, oldest first."""
    plan: dict[str, Any] | None = None
    on_console_loss: OnConsoleLoss = "continue"
    watched: bool = False
    """True if a monitor has a ``report`` call open."""
