"""Puts together the parts of an agent's loop."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dimos_streams.agent.calls.call_scope import CallScope
from dimos_streams.agent.calls.skill_catalog import Offers
from dimos_streams.agent.context.results import ResultPipeline
from dimos_streams.agent.loop.parts import LoopParts, ModelView, Permissions, StopRules
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.chain import build_chain
from dimos_streams.agent.policies.repetition import RepetitionGuard
from dimos_streams.agent.policies.runaway import RunawayGuard
from dimos_streams.agent.tools.local_tools import LocalTool, LocalTools
from dimos_streams.agent.tools.own_tools import call_tools, elicitation_tool, plan_tools, read_result_tool
from dimos_streams.errors import UnknownSkillError
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.tool_stream.arguments.defaults import checked_arguments

if TYPE_CHECKING:
    from dimos_streams.agent.core import AgentCore


def loop_parts(core: AgentCore) -> LoopParts:
    """The parts of the agent's own loop; sub-agents share some of them."""
    config = core.config
    scope = core.delegation.scope(core.calls)
    tools = [*own_tools(core, scope), *core.delegation.tools(lambda: core.loop.parts)]
    return LoopParts(
        model=core.model,
        queue=core.queue,
        calls=core.calls,
        scope=scope,
        events=core.events,
        view=ModelView(
            conversation=core.conversation,
            offers=core.offers,
            tools=LocalTools(tools),
            results=ResultPipeline(core.results, config.results, core.pictures),
        ),
        permissions=_permissions(core),
        stop_rules=StopRules(conditions=config.stop_when.all(), robot=core.robot),
    )


def own_tools(core: AgentCore, scope: CallScope) -> list[LocalTool]:
    """The tools that the model is offered besides skills, with the calls in its reach; each is offered only where it
    makes sense."""

    def needs_plans() -> bool:
        return _free_motions(core) is not None or bool(core.config.zones)

    return [
        *call_tools(scope, core.calls.endings.cancel, always=core.config.call_tools_always),
        read_result_tool(core.results),
        *plan_tools(core.books.plans, offered=needs_plans),
        elicitation_tool(core.foreground),
    ]


def check_step(offers: Offers, allowed: AllowedGate, skill: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a plan's step, completed by the defaults of what they leave out.

    Raises ``SkillError`` for a step that is not a call that the model could make.
    """
    known = {name: offered for name, offered in offers.offered.items() if allowed.allowed(offered)}
    if skill not in known:
        raise UnknownSkillError(skill, known)
    return checked_arguments(known[skill], arguments)


def _permissions(core: AgentCore) -> Permissions:
    return Permissions(
        control=core.control,
        reviewer=build_chain(
            core.config,
            core.books,
            motions=partial(_free_motions, core),
            pose=partial(_pose, core),
            permit=core.control.permit,
        ),
        new_repetition=partial(RepetitionGuard, core.config.repetition),
        new_guard=partial(_new_guard, core),
        may_begin=lambda: core.control.may_begin_turn() and not core.foreground.busy,
        confirm_hold=core.robot_hold.confirmed,
    )


def _free_motions(core: AgentCore) -> int | None:
    """The number of motions that may begin without a plan, with the model that is asked at the moment; None for any
    number."""
    return core.model.limits.motions


def _new_guard(core: AgentCore) -> RunawayGuard:
    limits = core.model.limits
    return RunawayGuard(core.config.repetition, limits.actions, limits.actions_per_hour)


def _pose(core: AgentCore) -> PlanarPose | None:
    state = core.robot()
    return None if state.x is None or state.y is None else PlanarPose(state.x, state.y, state.yaw or 0.0)
