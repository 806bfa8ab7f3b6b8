"""Puts together what permits the calls of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from dimos_streams.agent.calls.skill_catalog import Offers
from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.control.control import Control
from dimos_streams.agent.control.dialogue import Foreground
from dimos_streams.agent.control.robot_hold import RobotHold
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.loop.parts import Permissions
from dimos_streams.agent.missions.stop_conditions import RobotState
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.books import GateBooks
from dimos_streams.agent.policies.gates.chain import build_chain
from dimos_streams.agent.policies.repetition import RepetitionGuard
from dimos_streams.agent.policies.runaway import RunawayGuard
from dimos_streams.errors import UnknownSkillError
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.tool_stream.arguments.defaults import checked_arguments
from dimos_streams.tool_stream.gateway import CallView


def permissions(
    config: AgentConfig,
    books: GateBooks,
    *,
    model: ModelInUse,
    control: Control,
    foreground: Foreground,
    robot_hold: RobotHold,
    robot: Callable[[], RobotState],
    open_motions: Callable[[], Awaitable[Sequence[CallView]]],
    refresh: Callable[[], Awaitable[None]],
) -> Permissions:
    """The permissions of an agent's loop; ``refresh`` is ``Offers.refresh``. Raises ``UserError`` for a user's gate
    that can't be made."""

    def pose() -> PlanarPose | None:
        state = robot()
        return None if state.x is None or state.y is None else PlanarPose(state.x, state.y, state.yaw or 0.0)

    def new_guard() -> RunawayGuard:
        return RunawayGuard(config.repetition, model.limits.actions, model.limits.actions_per_hour)

    reviewer = build_chain(
        config, books, motions=lambda: model.limits.motions, pose=pose, permit=control.permit, refresh=refresh
    )
    return Permissions(
        control=control,
        reviewer=reviewer,
        new_repetition=lambda: RepetitionGuard(config.repetition),
        new_guard=new_guard,
        may_begin=lambda: control.may_begin_turn() and not foreground.busy,
        confirm_hold=robot_hold.confirmed,
        open_motions=open_motions,
    )


def check_step(offers: Offers, allowed: AllowedGate, skill: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a plan's step, completed by the defaults of what they leave out.

    Raises ``SkillError`` for a step that is not a call that the model could make.
    """
    known = {name: offered for name, offered in offers.offered.items() if allowed.allowed(offered)}
    if skill not in known:
        raise UnknownSkillError(skill, known)
    return checked_arguments(known[skill], arguments)
