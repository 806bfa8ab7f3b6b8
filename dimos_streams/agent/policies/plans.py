"""Plans: sequences of calls that an operator approves as a whole."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dimos_streams import clock
from dimos_streams.agent.missions.mission import roots
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.canonical import canonical, shown
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.errors import SkillError, suggest
from dimos_streams.operator.known_names import SUBMIT_PLAN
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.plan_steps import is_plan
from dimos_streams.operator.reporting import within

_MAX_PLANS = 100
_MAX_STEPS = 100
_MAX_GOAL = 10_000
"""Maximum length of a goal, in characters."""
_SHOWN_GOAL = 50
_ASKED_GOAL = 200
"""Maximum length of a goal in what the operator is asked, in characters: the steps are what decides."""
_MAX_BYTES = 16_000
"""Maximum size of the JSON of all steps, in bytes, so that an operator can be shown all of them."""
_MAX_EVENT = 20_000
"""Maximum size of a plan's JSON in an event, in bytes; it comes again with each change of the plan."""


class CheckedStep(NamedTuple):
    """A step that is a call which can be made."""

    module: str
    """The module that a call of its skill reaches."""
    skill: str
    """The skill's own name: a model may have named it as it is offered it."""
    arguments: Mapping[str, Any]
    """The arguments with the defaults of what they leave out."""


Check = Callable[[str, Mapping[str, Any]], CheckedStep]
"""A check of a skill and arguments. Raises ``SkillError`` if there is no such skill, or they do not fit it."""


class PlanState(enum.StrEnum):
    """The state of a plan."""

    DRAFT = "draft"
    SUBMITTED = "submitted"
    APPROVED = "approved"
    REJECTED = "rejected"
    VOID = "void"
    """The plan was approved, and the mission that it was approved for is over."""


@dataclass(slots=True)
class PlanStep:
    """One call of a plan; an approved one may be made once."""

    module: str
    skill: str
    arguments: Mapping[str, Any]
    used: bool = False
    until: float = float("inf")
    """The time on ``clock.steady`` at which its plan's approval lapses."""
    void: bool = False
    """True if the mission that its plan was approved for is over."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of this step: a call with the same key is the step. A skill of another module may do something
        else under its name."""
        return self.module, self.skill, canonical(self.arguments)

    @property
    def lapsed(self) -> bool:
        """True if the approval holds no more."""
        return self.void or clock.steady() >= self.until

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON."""
        return {"skill": self.skill, "arguments": dict(self.arguments)}


@dataclass(slots=True)
class Plan:
    """A plan as it stands."""

    id: str
    goal: str
    steps: list[PlanStep] = field(default_factory=list)
    state: PlanState = PlanState.DRAFT
    reason: str = ""
    """The operator's reason for the decision, why there is none, or why its approval is void."""
    missions: frozenset[str] = frozenset()
    """The ids of the outermost missions that it was handed in for, as long as they last."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        steps = [{**step.to_dict(), "used": step.used} for step in self.steps]
        return {"id": self.id, "goal": self.goal, "state": self.state.value, "reason": self.reason, "steps": steps}

    def text(self) -> str:
        """Return the plan as a text for models and people."""
        lines = [f"Plan {self.id} ({self.goal}) is {self.state.value}{f': {self.reason}' if self.reason else ''}"]
        for number, step in enumerate(self.steps, 1):
            lines.append(f"{number}. {shown(step.skill, step.arguments)}{' - begun' if step.used else ''}")
        return "\n".join(lines)


class PlanRegistry:
    """The plans of an agent: written as drafts, submitted to the operator, and used up step by step.

    A plan is asked for like a call, with the steps as arguments, so whoever decides on approvals decides on plans,
    and may change the steps. An approval covers the plan's steps: calls of the same skill of the same module with the
    same arguments, each once, in any order. It holds for the mission in which the plan was handed in, with its
    sub-missions: when that is over, however it ended, or the operator aborts or stops the robot, it is void, and what
    is left has to be approved anew. It does not outlive the process either. The oldest plans are forgotten.
    """

    def __init__(self, approvals: ApprovalRegistry, emit: Emit, check: Check, *, valid_s: float = 3600.0) -> None:
        """``check`` judges steps when they are written."""
        self._approvals = approvals
        self._emit = emit
        self._check = check
        self._valid_s = valid_s
        self._plans = NewestEntries[str, Plan](_MAX_PLANS)
        self._numbers = itertools.count(1)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans that are remembered, oldest first."""
        return tuple(self._plans.values())

    def get(self, id: str) -> Plan:
        """Return the plan of that id. Raises ``SkillError`` for an unknown one."""
        if id not in self._plans:
            listed = ", ".join(self._plans) or "none"
            gone = "older ones, and those from before a restart, are forgotten"
            raise SkillError(f"no plan has the id {id!r}{suggest(id, self._plans)} (known: {listed}); {gone}")
        return self._plans[id]

    def create(self, goal: str, steps: Sequence[Mapping[str, Any]] = ()) -> Plan:
        """Begin a draft. Raises ``SkillError`` for a step that is not valid, or a goal that is too long."""
        if len(goal) > _MAX_GOAL:
            raise SkillError(
                f"the goal has {len(goal)} characters, and {_MAX_GOAL} are the most: say in a sentence what the plan"
                f" is for (it begins with {goal[:_SHOWN_GOAL]!r})"
            )
        checked = self._checked(steps)
        plan = Plan(f"plan-{next(self._numbers)}", goal, checked)
        self._plans[plan.id] = plan
        self._emit_plan(plan)
        return plan

    def add_steps(self, id: str, steps: Sequence[Mapping[str, Any]]) -> Plan:
        """Add steps to a draft. Raises ``SkillError`` if that is not possible."""
        plan = self.get(id)
        if plan.state is not PlanState.DRAFT:
            raise SkillError(f"plan {id!r} is {plan.state.value}: steps can be added to a draft only; create another")
        checked = self._checked(steps)
        if len(plan.steps) + len(checked) > _MAX_STEPS:
            raise SkillError(f"a plan can have {_MAX_STEPS} steps")
        _check_size([*plan.steps, *checked])
        plan.steps.extend(checked)
        self._emit_plan(plan)
        return plan

    async def submit(self, id: str, missions: tuple[str, ...] = ()) -> Plan:
        """Ask the operator about a plan, and wait for the decision. Of a plan whose approval is void, only what is
        left is asked for.

        If nobody decides, it is a draft again: nobody may have been asked, or in time, or waiting was cancelled.
        Raises ``SkillError`` for a plan in any other state, or without steps.
        """
        plan = self.get(id)
        if plan.state not in (PlanState.DRAFT, PlanState.VOID):
            raise SkillError(f"plan {id!r} is {plan.state.value}, not a draft")
        plan.steps = [PlanStep(step.module, step.skill, step.arguments) for step in plan.steps if not step.used]
        if not plan.steps:
            raise SkillError(f"plan {id!r} has no steps")
        plan.state, plan.reason, plan.missions = PlanState.SUBMITTED, "", _of(missions)
        self._emit_plan(plan)
        try:
            goal = beginning(plan.goal, _ASKED_GOAL)
            asked = {"plan": plan.id, "steps": [step.to_dict() for step in plan.steps], "goal": goal}
            decision = await self._approvals.ask(
                SUBMIT_PLAN, asked, reason="a plan", missions=missions, check=self._check_plan, anew=True
            )
            plan.reason = decision.reason
            if decision.approved:
                plan.steps = self._checked(decision.arguments["steps"])
                for step in plan.steps:
                    step.until = clock.steady() + self._valid_s
                plan.state = PlanState.APPROVED
                if not plan.missions:  # they ended while this task was waking up
                    _make_void(plan, "the mission that it was approved for is over")
            elif decision.rejected:
                plan.state = PlanState.REJECTED
        finally:
            if plan.state is PlanState.SUBMITTED:
                plan.state = PlanState.DRAFT
            self._emit_plan(plan)
        return plan

    def apply(self, event: AgentEvent) -> None:
        """Take in an event of the agent that ends missions: an abort ends all of them."""
        abort = EventKind.ABORT.data_of(event)
        if abort and abort["phase"] == "start":
            self._void("the operator has aborted", lambda plan: plan.missions)
        elif event.kind in (EventKind.ENDED, EventKind.DONE):
            self._void("the mission that it was approved for is over", lambda plan: frozenset(event.missions))

    def robot_stopped(self, missions: Iterable[str]) -> None:
        """Take in that an operator's stop of the robot has ended a call of missions. Plans that wait for approval
        then are not affected: they are decided on after the stop."""
        pending = self._approvals.pending()
        asked = {each.arguments.get("plan") for each in pending if is_plan(each.skill, each.module)}
        over = _of(missions)
        self._void("an operator has stopped the robot", lambda plan: frozenset() if plan.id in asked else over)

    def claim_step(
        self, module: str, skill: str, arguments: Mapping[str, Any], missions: Iterable[str]
    ) -> PlanStep | None:
        """Use up and return the step that is this call, of a plan approved for one of these missions, or None if
        there is none.

        ``used = False`` gives it back.
        """
        key, whose = (module, skill, canonical(arguments)), _of(missions)
        for plan in self._plans.values():
            if plan.state is PlanState.APPROVED and plan.missions & whose:
                for step in plan.steps:
                    if not step.used and not step.lapsed and step.key == key:
                        step.used = True
                        return step
        return None

    def view(self) -> dict[str, Any] | None:
        """The newest plan as JSON, for operators, or None before the first."""
        return next(reversed(self._plans.values())).to_dict() if self._plans else None

    def _void(self, why: str, over: Callable[[Plan], frozenset[str]]) -> None:
        """Take from each plan the missions that are over; the approval of one that has none left is void."""
        for plan in self._plans.values():
            plan.missions -= over(plan)
            if not plan.missions and plan.state is PlanState.APPROVED:
                _make_void(plan, why)
                self._emit_plan(plan)

    def _check_plan(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(arguments.get("steps"), list | tuple) or not arguments["steps"]:
            raise SkillError("a plan needs steps: a list of objects with 'skill' and 'arguments'")
        return {**arguments, "steps": [step.to_dict() for step in self._checked(arguments["steps"])]}

    def _checked(self, steps: Sequence[Mapping[str, Any]]) -> list[PlanStep]:
        if len(steps) > _MAX_STEPS:
            raise SkillError(f"a plan can have {_MAX_STEPS} steps, not {len(steps)}")
        checked = []
        for number, step in enumerate(steps, 1):
            skill = step.get("skill") if isinstance(step, Mapping) else None
            arguments = step.get("arguments", {}) if isinstance(step, Mapping) else None
            if not isinstance(skill, str) or not isinstance(arguments, Mapping):
                raise SkillError(f"step {number} is {step!r}; it needs 'skill' (a name) and 'arguments' (an object)")
            try:
                given = self._check(skill, arguments)
            except SkillError as error:
                raise SkillError(f"step {number}: {error}") from error
            checked.append(PlanStep(given.module, given.skill, dict(given.arguments)))
        _check_size(checked)
        return checked

    def _emit_plan(self, plan: Plan) -> None:
        self._emit(EventKind.PLAN, (), plan=within(plan.to_dict(), _MAX_EVENT))


def _make_void(plan: Plan, why: str) -> None:
    plan.state, plan.reason = PlanState.VOID, why
    for step in plan.steps:
        step.void = True


def _check_size(steps: Iterable[PlanStep]) -> None:
    """Raise ``SkillError`` for steps that no operator could be shown."""
    size = len(json_text([step.to_dict() for step in steps]).encode())
    if size > _MAX_BYTES:
        raise SkillError(f"the steps have {size} bytes as JSON, and {_MAX_BYTES} are the most: make several plans")


def _of(missions: Iterable[str]) -> frozenset[str]:
    """The ids of the outermost missions of these; what belongs to no mission counts as one of its own."""
    return frozenset(roots(missions) or ("",))
