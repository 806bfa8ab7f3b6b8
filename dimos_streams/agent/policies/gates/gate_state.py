"""The state that the gates of one agent keep from one call to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dimos_streams.agent.missions.end_state import cancelled_by_another, stopped_by
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.enabled import EnabledGate
from dimos_streams.agent.policies.gates.motions import FreeMotions
from dimos_streams.agent.policies.gates.settings import GateSettings
from dimos_streams.agent.policies.plans import Check, PlanRegistry
from dimos_streams.agent.policies.rejections import Rejections
from dimos_streams.agent.policies.skill_selection import SkillSelection
from dimos_streams.agent.policies.stopped_missions import StoppedMissions
from dimos_streams.agent.record.agent_events import Emit, sub_of
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import ToolEvent


class GateState:
    """The skills that are allowed and enabled, approvals, plans, rejected calls, and motions without a plan."""

    def __init__(
        self,
        settings: GateSettings,
        emit: Emit,
        check: Check,
        *,
        agent: str = "agent",
        allowed: AllowedGate | None = None,
        input: Callable[[tuple[str, ...]], str] = lambda missions: "",
        why_ended: Callable[[tuple[str, ...]], str] = lambda missions: "",
    ) -> None:
        """``check`` judges steps of plans; ``allowed`` is the gate of the agent's own skills, by default one that
        goes by their names alone; ``input`` and ``why_ended`` are as for ``ApprovalRegistry``."""
        self.agent = agent
        """The module whose settings these are."""
        self.allowed = allowed or AllowedGate(SkillSelection(settings.skills, agent), lambda name: ())
        self.enabled = EnabledGate(emit, settings.disabled_skills, agent=agent)
        self.approvals = ApprovalRegistry(settings.approval, emit, agent=agent, input=input, why_ended=why_ended)
        self.plans = PlanRegistry(self.approvals, emit, check, valid_s=settings.plan.valid_s)
        self.rejections = Rejections()
        self.free_motions = FreeMotions(emit)
        self.stopped = StoppedMissions(emit)

    def apply(self, event: AgentEvent) -> None:
        """Take in an event of the agent. Plans are the agent's own: no end of a sub-agent's mission ends
        one."""
        self.rejections.apply(event)
        self.approvals.decided.apply(event)
        if not sub_of(event):
            self.plans.apply(event)

    def call_ended(self, close: ToolEvent, missions: Sequence[str], *, by_agent: bool) -> None:
        """Take in how a call of missions has ended; ``by_agent`` is True if the agent itself wanted it to end."""
        self.approvals.decided.call_ended(close, by_agent=by_agent)
        if stopped_by(close):
            self.robot_stopped(missions)

    def child_ended(self, close: ToolEvent, missions: Sequence[str], *, by_agent: bool) -> None:
        """Take in how a part of a call of missions has ended; ``by_agent`` is as for ``call_ended``."""
        if stopped_by(close) or cancelled_by_another(close, by_agent=by_agent):
            self.call_ended(close, missions, by_agent=by_agent)

    def robot_stopped(self, missions: Sequence[str]) -> None:
        """Take in that an operator has stopped the robot, or released it: what was approved for these missions before
        that holds no more, and an operator is asked before anything moves the robot in them."""
        self.stopped.stop(missions)
        self.approvals.decided.robot_stopped(missions)
        self.plans.robot_stopped(missions)

    def restore(self, events: Iterable[AgentEvent]) -> None:
        """Take in the events of the process before this one."""
        for event in events:
            self.rejections.apply(event)
            self.free_motions.restore(event)
            self.stopped.restore(event)
