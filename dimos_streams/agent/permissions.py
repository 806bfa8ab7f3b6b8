"""Puts together what permits the calls of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.missions.mission import Mission, input_of, why_ended
from dimos_streams.agent.missions.stop_conditions import RobotState
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.base import CallRequest, Permit, Reviewer
from dimos_streams.agent.policies.gates.chain import build_chain
from dimos_streams.agent.policies.gates.gate_state import GateState
from dimos_streams.agent.policies.plans import CheckedStep
from dimos_streams.agent.policies.skill_selection import SkillSelection
from dimos_streams.agent.record.agent_events import Emit
from dimos_streams.common.names import skill_meant
from dimos_streams.errors import UnknownSkillError
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.tool_stream.arguments.defaults import checked_arguments


def make_gate_state(
    config: AgentConfig, name: str, emit: Emit, catalog: SkillCatalog, missions: Mapping[str, Mission]
) -> GateState:
    """Return the state of an agent's gates; ``missions`` are those that are not over."""
    allowed = AllowedGate(SkillSelection(config.skills, name), catalog.all_named)
    check = partial(_check_step, catalog, allowed)
    return GateState(
        config,
        emit,
        check,
        agent=name,
        allowed=allowed,
        input=partial(input_of, missions),
        why_ended=partial(why_ended, missions),
    )


def agent_reviewer(
    config: AgentConfig,
    gate_state: GateState,
    *,
    model: ModelInUse,
    control: Control,
    robot: Callable[[], RobotState],
    refresh: Callable[[], Awaitable[None]],
) -> Reviewer:
    """Return the reviewer of an agent's own loop; ``refresh`` is ``SkillCatalog.refresh``. Raises ``UserError`` for a
    user's gate that can't be made."""

    def pose() -> PlanarPose | None:
        state = robot()
        return None if state.x is None or state.y is None else PlanarPose(state.x, state.y, state.yaw or 0.0)

    def permit(request: CallRequest) -> Permit:
        skill = request.skill.name
        return control.permit(skill, request.arguments, request.tool_call_id, request.missions, request.parent)

    return build_chain(
        config, gate_state, motions=lambda: model.limits.motions, pose=pose, permit=permit, refresh=refresh
    )


def _check_step(catalog: SkillCatalog, allowed: AllowedGate, skill: str, arguments: Mapping[str, Any]) -> CheckedStep:
    """Return a plan's step with the arguments completed by the defaults of what they leave out.

    Raises ``SkillError`` for a step that is not a call that the model could make.
    """
    known = {name: offered for name, offered in catalog.offered.items() if allowed.allowed(offered)}
    own = skill_meant(skill, known)
    if own is None:
        raise UnknownSkillError(skill, known)
    return CheckedStep(known[own].module, own, checked_arguments(known[own], arguments))
