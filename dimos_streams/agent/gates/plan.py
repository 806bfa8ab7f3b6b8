"""The plan gate: few motions are free, more need a plan; so does the way into a restricted zone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from dimos_streams.agent.canonical import shown
from dimos_streams.agent.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.gates.zones import RobotPose, Zones
from dimos_streams.agent.missions import roots
from dimos_streams.agent.plans import PlanBook, Step

_MISSIONS = 1000
_WAY_OUT = (
    "Write a plan with create_plan whose steps are the very calls that you want to make, hand it in with "
    "submit_plan, and make the calls when it is approved; or ask the operator."
)


class PlanGate:
    """Lets a call pass that is a step of an approved plan, or needs none.

    A motion needs none as one of the first ``motions`` that the mission begins, unless it enters a restricted zone.
    A call that needs none and is a planned step all the same uses the step up, and none of the free motions.
    """

    def __init__(
        self,
        plans: PlanBook,
        zones: Zones,
        *,
        motions: Callable[[], int | None] = lambda: 2,
        pose: Callable[[], RobotPose | None] = lambda: None,
    ) -> None:
        """``motions`` without a plan, None for any number. ``pose`` is the robot's now, None while unknown."""
        self._plans = plans
        self._zones = zones
        self._motions = motions
        self._pose = pose
        self._begun: OrderedDict[str, int] = OrderedDict()

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Gate``."""
        skill, arguments = request.skill, request.arguments
        if not skill.motion:
            return Allow(arguments, request.on_duplicate)
        step = self._plans.take(skill.name, arguments)
        if step is not None:
            return Allow(arguments, request.on_duplicate, give_back=lambda: _give_back(step))
        zone = self._zones.entered(arguments, self._pose())
        if zone:
            return self._refuse(request, f"it would enter the restricted zone {zone!r}")
        free = self._motions()
        if free is not None and self._count(request.missions) >= free:
            return self._refuse(request, f"{free} motions of this mission have begun without a plan")
        self._charge(request.missions, 1)
        return Allow(arguments, request.on_duplicate, give_back=lambda: self._charge(request.missions, -1))

    def _refuse(self, request: CallRequest, why: str) -> Refuse:
        call = shown(request.skill.name, request.arguments)
        text = f"Not run: {call} needs an approved plan that has it as a step, because {why}. {_WAY_OUT}"
        return Refuse(text, charged=False)

    def _count(self, missions: tuple[str, ...]) -> int:
        return max((self._begun.get(mission, 0) for mission in roots(missions) or ("",)), default=0)

    def _charge(self, missions: tuple[str, ...], motions: int) -> None:
        for mission in roots(missions) or ("",):
            self._begun[mission] = max(0, self._begun.get(mission, 0) + motions)
            self._begun.move_to_end(mission)
        while len(self._begun) > _MISSIONS:
            self._begun.popitem(last=False)


def _give_back(step: Step) -> None:
    step.used = False
