"""The tools that every agent has of its own: its calls, whole results, plans, a question to the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from dimos_streams.agent.calls.call_scope import CallScope
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.context.results import READ_RESULT, ResultStore, read_part
from dimos_streams.agent.control.dialogue import Foreground
from dimos_streams.agent.missions.mission import Mission, ids
from dimos_streams.agent.policies.canonical import shown
from dimos_streams.agent.policies.plans import PlanRegistry, PlanState
from dimos_streams.agent.tools.call_result import CallResult
from dimos_streams.agent.tools.local_tools import Arguments, LocalTool, NoArguments
from dimos_streams.errors import SkillError
from dimos_streams.operator.known_names import SUBMIT_PLAN

ALL_CALLS = "all"
"""Stands for all calls where ``cancel_call`` takes an id."""
_MAX_READ = 8000
_MAX_LISTED = 50


@dataclass(frozen=True, slots=True)
class OwnTools:
    """Makes the tools that each loop of an agent offers its model besides skills, from what they act on."""

    results: ResultStore
    plans: PlanRegistry
    foreground: Foreground
    needs_plans: Callable[[], bool]
    """Returns whether anything needs a plan, so that the model is offered to write one."""
    call_tools_always: bool

    def make(self, scope: CallScope) -> list[LocalTool]:
        """Return the tools of a loop, with the calls in its reach; each is offered only where it makes sense."""
        return [
            *call_tools(scope, always=self.call_tools_always),
            read_result_tool(self.results),
            *plan_tools(self.plans, offered=self.needs_plans),
            elicitation_tool(self.foreground),
        ]


class CallId(Arguments):
    """The arguments of ``cancel_call``."""

    call_id: Annotated[str, Field(description='The id of a call that runs, or "all".')]
    reason: Annotated[str, Field(description="Why, for the operator.")] = ""


def call_tools(scope: CallScope, *, always: bool) -> list[LocalTool]:
    """``list_calls`` and ``cancel_call`` for the calls in reach, offered while one runs, or ``always``."""

    def offered() -> bool:
        return always or bool(scope.open())

    return [_list_calls(scope, offered), _cancel_call(scope, offered)]


def _list_calls(scope: CallScope, offered: Callable[[], bool]) -> LocalTool:
    async def list_calls(arguments: NoArguments, missions: tuple[Mission, ...]) -> str:
        return _list_of(scope.open())

    return LocalTool(
        name="list_calls",
        description="List the calls that run now, with what each said last.",
        arguments=NoArguments,
        run=list_calls,
        offered=offered,
        concurrent=True,
        polling=True,
    )


def _cancel_call(scope: CallScope, offered: Callable[[], bool]) -> LocalTool:
    cancel = scope.calls.endings.cancel

    async def cancel_call(arguments: CallId, missions: tuple[Mission, ...]) -> str:
        reason = arguments.reason or "the model wants it to end"
        if arguments.call_id == ALL_CALLS:
            running = scope.open()
            await cancel(running, reason)
            named = ", ".join(map(_named, running))
            return f"Asked to end, which will be reported: {named}." if named else "No call runs."
        call = scope.find(arguments.call_id)
        if call is None:
            raise await scope.refusal(arguments.call_id)
        await cancel([call], reason)
        return f"Call {_named(call)} was asked to end; its end will be reported."

    return LocalTool(
        name="cancel_call",
        description="End a call that runs.",
        arguments=CallId,
        run=cancel_call,
        offered=offered,
    )


def _list_of(running: Sequence[OpenCall]) -> str:
    lines = [
        f"{call.call_id}: {shown(call.skill, call.arguments)}{f' - {call.text}' if call.text else ''}"
        for call in running[:_MAX_LISTED]
    ]
    if len(running) > _MAX_LISTED:
        lines.append(f"and {len(running) - _MAX_LISTED} more")
    return "\n".join(lines) or "No call runs."


def _named(call: OpenCall) -> str:
    return f"{call.call_id} of {call.skill}"


class ResultPart(Arguments):
    """The arguments of ``read_result``."""

    reference: Annotated[str, Field(description='The reference that the shortened result names, "result-1".')]
    offset: Annotated[int, Field(ge=0, description="The first character to read.")] = 0
    length: Annotated[int, Field(ge=1, le=_MAX_READ, description="How many characters at most.")] = 4000
    search: Annotated[str, Field(description="Read only around the places where this text occurs.")] = ""


def read_result_tool(store: ResultStore) -> LocalTool:
    """``read_result``: parts of results that were shortened or masked."""

    async def read(arguments: ResultPart, missions: tuple[Mission, ...]) -> str:
        whole = store.get(arguments.reference)
        return read_part(whole, offset=arguments.offset, length=arguments.length, search=arguments.search)

    return LocalTool(
        name=READ_RESULT,
        description="Read a part of a result that was shown to you shortened, or not any more.",
        arguments=ResultPart,
        run=read,
        concurrent=True,
        polling=True,
    )


class PlannedCall(Arguments):
    """A step of a plan."""

    skill: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class NewPlan(Arguments):
    """The arguments of ``create_plan``."""

    goal: Annotated[str, Field(description="What the plan is for, in a sentence that the operator reads.")]
    steps: Annotated[list[PlannedCall], Field(description="The calls, exactly as they will be made.")] = Field(
        default_factory=list
    )


class MoreSteps(Arguments):
    """The arguments of ``add_plan_steps``."""

    plan: str
    steps: Annotated[list[PlannedCall], Field(min_length=1)]


class PlanId(Arguments):
    """The arguments of ``submit_plan`` and ``check_plan``."""

    plan: Annotated[str, Field(description='The plan\'s id, "plan-1".')]


def plan_tools(plans: PlanRegistry, *, offered: Callable[[], bool]) -> list[LocalTool]:
    """``create_plan``, ``add_plan_steps``, ``submit_plan`` (waits for the operator) and ``check_plan``."""
    return [*_tools_to_write_plans(plans, offered), *_tools_to_carry_plans_out(plans, offered)]


def _tools_to_write_plans(plans: PlanRegistry, offered: Callable[[], bool]) -> list[LocalTool]:
    async def create(arguments: NewPlan, missions: tuple[Mission, ...]) -> str:
        plan = plans.create(arguments.goal, [step.model_dump() for step in arguments.steps])
        return f"{plan.text()}\nHand it in with {SUBMIT_PLAN}(plan={plan.id!r}) when it is complete."

    async def add(arguments: MoreSteps, missions: tuple[Mission, ...]) -> str:
        return plans.add_steps(arguments.plan, [step.model_dump() for step in arguments.steps]).text()

    return [
        LocalTool(
            name="create_plan",
            description="Write down a plan: calls that the operator approves as a whole before they are made.",
            arguments=NewPlan,
            run=create,
            offered=offered,
        ),
        LocalTool(
            name="add_plan_steps",
            description="Add calls to the end of a plan that was not handed in yet.",
            arguments=MoreSteps,
            run=add,
            offered=offered,
        ),
    ]


def _tools_to_carry_plans_out(plans: PlanRegistry, offered: Callable[[], bool]) -> list[LocalTool]:
    async def submit(arguments: PlanId, missions: tuple[Mission, ...]) -> CallResult:
        plan = await plans.submit(arguments.plan, ids(missions))
        return CallResult(plan.text(), is_error=plan.state is not PlanState.APPROVED, charged=False)

    async def check(arguments: PlanId, missions: tuple[Mission, ...]) -> str:
        return plans.get(arguments.plan).text()

    return [
        LocalTool(
            name=SUBMIT_PLAN,
            description="Hand a plan in and wait for the operator's decision. The operator may change the steps.",
            arguments=PlanId,
            run=submit,
            offered=offered,
        ),
        LocalTool(
            name="check_plan",
            description="How a plan stands: whether it is approved, and which of its calls were made.",
            arguments=PlanId,
            run=check,
            offered=offered,
            concurrent=True,
            polling=True,
        ),
    ]


class Question(Arguments):
    """The arguments of ``elicit``."""

    question: str
    timeout_s: Annotated[float, Field(gt=0, le=3600, description="How long to wait for the answer.")] = 120.0


def elicitation_tool(foreground: Foreground) -> LocalTool:
    """``elicit``: a question in the foreground; the operator's next input is its answer."""

    async def ask(arguments: Question, missions: tuple[Mission, ...]) -> CallResult:
        async with foreground.dialogue(ids(missions)) as dialogue:
            try:
                answer = await dialogue.ask(arguments.question, arguments.timeout_s)
            except TimeoutError:
                raise SkillError(f"the operator did not answer within {arguments.timeout_s:g} s") from None
        return CallResult(f"The operator says: {answer}", speaker="operator")

    return LocalTool(
        name="elicit",
        description="Ask the operator a question and wait for the answer. Only for what you can't find out yourself.",
        arguments=Question,
        run=ask,
    )
