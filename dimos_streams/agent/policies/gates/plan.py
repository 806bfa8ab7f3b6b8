"""The plan gate: a few motions are free, more need a plan; so does the way into a restricted zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dimos_streams.agent.policies.canonical import canonical, shown
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.policies.gates.matching.zones import Zones, goal_of
from dimos_streams.agent.policies.gates.motions import FreeMotions
from dimos_streams.agent.policies.plans import PlanRegistry, PlanStep
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.skill import ODOM, SkillInfo
from dimos_streams.tool_stream.gateway import OfferedSkill

_WAY_OUT = (
    "Write a plan with create_plan whose steps are the very calls that you want to make, hand it in with "
    "submit_plan, and make the calls when it is approved; or ask the operator."
)


class PlanGate:
    """Lets a call pass that is a step of an approved plan, or needs none.

    A motion needs none if it is one of the first ``motions`` that the mission begins, unless it enters a restricted
    zone: from where the robot is when it is asked for, or from where it is when the call begins. A motion that needs
    none and is a planned step all the same uses the step up, and none of the free motions.
    """

    def __init__(
        self,
        plans: PlanRegistry,
        zones: Zones,
        begun: FreeMotions,
        *,
        motions: Callable[[], int | None],
        pose: Callable[[], PlanarPose | None],
    ) -> None:
        """``motions`` returns how many need no plan, None for any number. ``pose`` returns the robot's now, None
        while unknown."""
        self._plans = plans
        self._zones = zones
        self._begun = begun
        self._motions = motions
        self._pose = pose

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        skill, arguments = request.skill.name, request.arguments
        if not request.skill.may_be_motion:
            return Allow(arguments, request.on_duplicate)
        if request.part_of_motion:
            objection = self._zone_objection(request.skill, arguments)
            allowed = Allow(
                arguments, request.on_duplicate, again=lambda now: self._zone_objection(request.skill, now)
            )
            return objection or allowed
        step = self._plans.claim_step(request.skill.module, skill, arguments, request.missions)
        if step is not None:
            return Allow(
                step.arguments,  # as the operator saw them: the same call may be spaced in another way
                request.on_duplicate,
                give_back=lambda: _give_back(step),
                again=lambda now: self._step_objection(step, request.skill, now),
                planned=True,
            )
        objection = self._zone_objection(request.skill, arguments)
        if objection is not None:
            return objection
        free = self._motions()
        if free is not None and self._begun.begun(request.missions) >= free:
            return _refusal(skill, arguments, _none_free(free))
        return Allow(
            arguments,
            request.on_duplicate,
            give_back=self._begun.begin(skill, request.missions),
            again=lambda now: self._zone_objection(request.skill, now),
        )

    def _step_objection(self, step: PlanStep, skill: OfferedSkill, arguments: Mapping[str, Any]) -> Refuse | None:
        """Return a refusal, or None. A plan stands for its own calls, wherever the robot is, as long as its approval
        holds."""
        if step.key != (skill.module, skill.name, canonical(arguments)):
            return self._zone_objection(skill, arguments)
        if step.lapsed:
            return _refusal(skill.name, arguments, "the approval of its plan lapsed while the call waited")
        return None

    def _zone_objection(self, skill: SkillInfo, arguments: Mapping[str, Any]) -> Refuse | None:
        if self._zones and skill.frame != ODOM and goal_of(arguments) is not None:
            why = f"its goal is in the frame {skill.frame!r}, and restricted zones are known in {ODOM!r} only"
            return _refusal(skill.name, arguments, why)
        zone = self._zones.entered(arguments, self._pose())
        return _refusal(skill.name, arguments, f"it would enter the restricted zone {zone!r}") if zone else None


def _none_free(most: int) -> str:
    """The reason why a motion that needs no plan by itself needs one now; ``most`` are free in a mission."""
    if not most:
        return "this agent moves the robot by plans only"
    motions, have = ("motions", "have") if most > 1 else ("motion", "has")
    return f"{most} {motions} of this mission {have} begun without a plan"


def _refusal(skill: str, arguments: Mapping[str, Any], why: str) -> Refuse:
    call = shown(skill, arguments)
    text = f"Not run: {call} needs an approved plan that has it as a step, because {why}. {_WAY_OUT}"
    return Refuse(text, charged=False)


def _give_back(step: PlanStep) -> None:
    step.used = False
