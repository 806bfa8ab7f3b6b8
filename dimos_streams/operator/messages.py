"""What agents report, and the messages of ``WS /monitor``.

An agent's operator skill ``report`` is a call that never ends by itself: each ``AgentEvent`` is one of its updates,
each ``AgentSnapshot`` one of its progresses (``reporting.py`` packs and unpacks them). The monitor in the bridge
holds such a call open as long as somebody watches, and tells all watchers.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dimos_streams.tool_stream.event import MAX_NAME, Outcome

MAX_TEXT = 4000
"""Characters of a text that an operator sends."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
OptionalName = Annotated[str, Field(max_length=MAX_NAME)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
OnConsoleLoss = Literal["continue", "hold", "abort"]
"""What an agent does when nobody watches any more: go on, pause, or abort."""


class Message(BaseModel):
    """Base: frozen, and a field that it does not know is an error. Validators are built when they are first needed:
    few processes need all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


# What an agent tells


class AgentEvent(Message):
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


class Usage(Message):
    """What models have used: for a turn, for a mission, or since the agent's process was started."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """In US dollars; None if prices are not known."""

    @property
    def tokens(self) -> int:
        """Of both directions."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=sum(known) if known else None,
        )


class QueueView(Message):
    """The agent's message queue."""

    waiting: int
    capacity: int


class MissionView(Message):
    """A mission that is not over."""

    id: str
    """The id of the call of ``say`` that it began with."""
    text: str
    """What the operator said, shortened."""
    utime: int
    """When it began."""


class ConversationEntry(Message):
    """One of the newest entries of the conversation, its text shortened."""

    number: int
    role: str
    text: str
    utime: int = 0
    skill: str = ""
    call_id: str = ""
    is_error: bool = False
    missions: tuple[str, ...] = ()


class ApprovalView(Message):
    """A call that waits for an operator's decision, or one that was decided on."""

    id: str
    agent: str
    skill: str
    module: str
    arguments: dict[str, Any]
    """As the model asked for them, or as an operator has changed them."""
    reason: str = ""
    """Why it is asked for (the rule that applies, a plan), and which words of an operator led to it."""
    missions: tuple[str, ...] = ()
    state: Literal["pending", "approved", "rejected", "deleted", "timed_out"] = "pending"
    created_utime: int
    expires_utime: int | None = None
    """When it counts as rejected, None if it waits for ever."""

    def __str__(self) -> str:
        return f"{self.id}, a call of {self.skill}, is {self.state.replace('_', ' ')}"


class WaitingCall(Message):
    """A call that may not begin yet, because the operator has paused the agent or steps through its calls."""

    skill: str
    arguments: dict[str, Any]
    tool_call_id: str = ""
    parent: str = ""
    """The call whose skill asks for it, empty where the model asks itself."""


class GateNotHeld(Message):
    """A velocity gate that does not confirm that it holds the robot still."""

    gate: str
    """The gate module's name."""
    problem: Literal["silent", "deaf", "not_holding", "moving"]
    """It was not heard of, its ``hold`` is not wired, it does not hold for this agent, or the base is driven."""
    text: str
    """The same, for people."""


class HoldView(Message):
    """What the velocity gates of an agent's robot say of its hold. Only they know whether the robot is kept still."""

    held: tuple[str, ...] = ()
    """Gates that have said that they hold it still for this agent."""
    not_held: tuple[GateNotHeld, ...] = ()
    """Gates that were heard of and have not."""

    @property
    def confirmed(self) -> bool:
        """Whether there is a gate, and each has said that it holds."""
        return bool(self.held) and not self.not_held

    def __str__(self) -> str:
        if self.not_held:
            return f"NOT held: {'; '.join(f'{gate.gate}: {gate.text}' for gate in self.not_held)}"
        if self.held:
            return f"held by {', '.join(self.held)}"
        return "NOT held: no velocity gate was heard, nothing confirms that a robot stands"


class PauseReport(HoldView):
    """What a pause did. Nothing begins any more in any case."""

    changed: bool
    """False if the agent was paused already."""

    def __str__(self) -> str:
        return f"{'paused' if self.changed else 'it is paused already'}, {super().__str__()}"


class AgentSnapshot(Message):
    """All that an operator needs to know about an agent, at one moment."""

    agent: str
    utime: int
    number: int
    """Number of the newest event that the snapshot contains, 0 before the first."""
    state: str
    """Of the loop: ``idle``, ``streaming``, ``executing``, …; the agent's documentation lists them."""
    mode: Literal["running", "paused", "stepping"] = "running"
    """Whether calls may begin: at once, not at all, or one by one."""
    hold: HoldView | None = None
    """While the robot is to be still, what its velocity gates say of that; None as long as they may just be late."""
    waiting_calls: tuple[WaitingCall, ...] = ()
    """In step mode, those that wait for the operator, oldest first."""
    model: str
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
    conversation: tuple[ConversationEntry, ...] = ()
    """The newest entries, oldest first."""
    plan: dict[str, Any] | None = None
    on_console_loss: OnConsoleLoss = "continue"
    watched: bool = False
    """Whether a monitor has a ``report`` call open."""


# What the bridge's monitor tells


class CallLine(Message):
    """A call that is not closed, as the broker knows it."""

    call_id: str
    skill: str
    module: str
    caller: str
    parent: str
    arguments: dict[str, Any]
    state: Literal["requested", "open"]
    text: str
    """Of its newest event."""
    resources: tuple[str, ...]
    requested_utime: int


class SkillLine(Message):
    """A skill that a module offers."""

    name: str
    module: str
    description: str
    available: bool
    audience: str
    agent: bool
    """Whether its module is an agent."""


class ModuleLine(Message):
    """A module of the run."""

    name: str
    instance: str
    pid: int
    health: str
    """``ok``, or what is wrong."""
    alive: bool
    state: dict[str, Any] = Field(default_factory=dict)
    """What it says of its own state, by topics: ``velocity_gate`` for instance."""


class RobotView(Message):
    """Where a robot is (metres, radians) and how full its battery; None for what was not heard of lately."""

    frame_id: str = ""
    x: float | None = None
    y: float | None = None
    yaw: float | None = None
    battery: float | None = None
    """0 (empty) to 1 (full)."""


class MonitorSnapshot(Message):
    """The state of a run, or of one agent's part of it."""

    agents: dict[str, AgentSnapshot]
    """By module name; of an agent that has not reported yet there is nothing here."""
    calls: tuple[CallLine, ...]
    """Those that are not closed, oldest first."""
    leases: dict[str, str]
    """Held resources with the ids of their calls."""
    skills: tuple[SkillLine, ...]
    modules: tuple[ModuleLine, ...]
    robots: dict[str, RobotView]
    """By namespace (``""``, ``"robot1"``); only what is known."""
    watchers: int
    """Connections to the monitor."""


class MonitorChange(Message):
    """Fields of a ``MonitorSnapshot`` that have changed, each with its whole new value."""

    agents: dict[str, AgentSnapshot] | None = None
    calls: tuple[CallLine, ...] | None = None
    leases: dict[str, str] | None = None
    skills: tuple[SkillLine, ...] | None = None
    modules: tuple[ModuleLine, ...] | None = None
    robots: dict[str, RobotView] | None = None
    watchers: int | None = None


class _ServerMessage(Message):
    seq: int
    """Counts 1..n on a connection."""


class SnapshotMessage(_ServerMessage):
    """The whole state: the first message, and the one after a ``gap``."""

    type: Literal["snapshot"] = "snapshot"
    utime: int
    snapshot: MonitorSnapshot


class ChangeMessage(_ServerMessage):
    """What is different from the last ``snapshot`` or ``change``. All events that it contains were sent before."""

    type: Literal["change"] = "change"
    utime: int
    change: MonitorChange


class EventMessage(_ServerMessage):
    """Something that happened in an agent."""

    type: Literal["event"] = "event"
    event: AgentEvent


class CallEvent(Message):
    """An event of a tool stream."""

    utime: int
    call_id: str
    seq: int
    type: Literal["open", "update", "progress", "close"]
    module: str
    skill: str
    caller: str
    text: str
    data: dict[str, Any]


class CallMessage(_ServerMessage):
    """An event of a call's tool stream; its fields are those of ``GET /tool_streams``."""

    type: Literal["call"] = "call"
    event: CallEvent


class GapMessage(_ServerMessage):
    """Messages were dropped because the client read too slowly. A ``snapshot`` follows."""

    type: Literal["gap"] = "gap"
    lost: int
    """How many."""


class ReplyMessage(_ServerMessage):
    """A command was carried out."""

    type: Literal["reply"] = "reply"
    id: str | int | None
    """The command's."""
    command: str
    call_id: str
    """Of the operator skill's call, or of the call that is cancelled."""
    outcome: Outcome | None
    """None while it goes on, as ``say`` does."""
    text: str
    result: Any = None


class ErrorMessage(_ServerMessage):
    """A command was not carried out, or what came was none. The connection stays."""

    type: Literal["error"] = "error"
    id: str | int | None
    problem: Literal["bad-json", "bad-command", "unknown-agent", "unknown-call", "refused", "unavailable", "internal"]
    text: str
    errors: dict[str, str] = Field(default_factory=dict)
    """Fields of the command with what is wrong with them."""
    call_id: str = ""
    """Of the call that the command began, whose fate can be read by it; empty if it began none."""


ServerMessage = Annotated[
    SnapshotMessage | ChangeMessage | EventMessage | CallMessage | GapMessage | ReplyMessage | ErrorMessage,
    Field(discriminator="type"),
]


# What clients send


class _Command(Message):
    id: Annotated[str, Field(max_length=MAX_NAME)] | int | None = None
    """Comes back in the reply."""
    agent: OptionalName = ""
    """The agent module's name, or its namespace; may be left out where there is only one."""


class Say(_Command):
    """Tell the agent something. The reply comes when the words have reached it; the mission goes on."""

    command: Literal["say"]
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    now: bool = False
    """Cut the present answer of the model, and let the words be the next that it hears."""


class Pause(_Command):
    """Hold the robot still and begin nothing new."""

    command: Literal["pause"]
    reason: Text = ""


class Resume(_Command):
    """Go on after a pause."""

    command: Literal["resume"]


class Step(_Command):
    """Step mode on or off, or let one call pass."""

    command: Literal["step"]
    mode: Literal["on", "off", "once"] = "once"


class Abort(_Command):
    """End the missions and their calls; with ``rollback`` take back what can be."""

    command: Literal["abort"]
    rollback: bool = False
    reason: Text = ""


class Undo(_Command):
    """Take back the newest calls, newest first."""

    command: Literal["undo"]
    count: Annotated[int, Field(ge=1)] = 1


class Forget(_Command):
    """Begin a new conversation; the record stays."""

    command: Literal["forget"]


class Decide(_Command):
    """Decide on an approval. ``arguments`` replace those that the model asked for."""

    command: Literal["decide"]
    approval: Name
    decision: Literal["approve", "reject", "delete"]
    arguments: dict[str, Any] | None = None
    reason: Text = ""


class Amend(_Command):
    """Change the arguments of a pending approval without deciding."""

    command: Literal["amend"]
    approval: Name
    arguments: dict[str, Any]


class SetSkill(_Command):
    """Allow or forbid the agent the use of a skill."""

    command: Literal["set_skill"]
    skill: Name
    enabled: bool


class Cancel(Message):
    """Ask a call to end."""

    command: Literal["cancel"]
    id: Annotated[str, Field(max_length=MAX_NAME)] | int | None = None
    call_id: Name
    reason: Text = "cancelled by the operator"


AgentCommand = Say | Pause | Resume | Step | Abort | Undo | Forget | Decide | Amend | SetSkill
Command = Annotated[AgentCommand | Cancel, Field(discriminator="command")]
