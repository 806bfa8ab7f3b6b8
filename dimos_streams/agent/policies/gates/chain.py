"""The chain of gates: the one place that states which gates there are and in which order a call meets them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from dimos_streams.agent.models.protocol import ToolSchema
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.approval import ApprovalGate
from dimos_streams.agent.policies.gates.arguments import ArgumentsGate
from dimos_streams.agent.policies.gates.base import (
    GRANTED,
    Allow,
    CallRequest,
    Gate,
    Permit,
    Refuse,
    Verdict,
    nothing,
    nothing_newer,
)
from dimos_streams.agent.policies.gates.duplicates import DuplicatesGate
from dimos_streams.agent.policies.gates.enabled import EnabledGate
from dimos_streams.agent.policies.gates.gate_state import GateState
from dimos_streams.agent.policies.gates.matching.zones import Zones
from dimos_streams.agent.policies.gates.permit import PermitGate
from dimos_streams.agent.policies.gates.plan import PlanGate
from dimos_streams.agent.policies.gates.rejected import RejectedGate
from dimos_streams.agent.policies.gates.settings import GateSettings
from dimos_streams.agent.policies.users_gates import load_gate
from dimos_streams.agent.policies.verdict_faults import objection_fault, verdict_fault
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.schemas.references import FOREIGN_PARTS, inlined
from dimos_streams.common.secrets import redacted
from dimos_streams.common.tasks import is_stray, stray_cancellation
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.tool_stream.gateway import OfferedSkill

_MAX_TOOLS = 1000
"""Number of skills whose schemas for the model are kept, by name: modules come and go."""
_logger = logging.getLogger(__name__)
_Look: TypeAlias = Callable[[Mapping[str, Any]], Refuse | None]


class GateChain:
    """Gates in order. The first refusal counts; what earlier gates had allowed is then given back to them."""

    def __init__(
        self,
        gates: Sequence[Gate],
        *,
        allowed: AllowedGate,
        enabled: EnabledGate,
        duplicates: DuplicatesGate,
        refresh: Callable[[], Awaitable[None]] = nothing_newer,
    ) -> None:
        """``refresh`` is that of each ``Allow``."""
        self.gates = tuple(gates)
        self.allowed = allowed
        self.enabled = enabled
        self._duplicates = duplicates
        self._refresh = refresh
        self._tools = NewestEntries[str, tuple[OfferedSkill, ToolSchema | None]](_MAX_TOOLS)

    async def review(self, request: CallRequest) -> Verdict:
        """See ``Reviewer``."""
        given: list[Callable[[], None]] = []
        notes: list[str] = []
        looks: list[_Look] = []
        permit = GRANTED
        complete = False
        try:
            for gate in self.gates:
                verdict = await _verdict(gate, request)
                if isinstance(verdict, Refuse):
                    return verdict
                request = replace(
                    request,
                    arguments=verdict.arguments,
                    on_duplicate=verdict.on_duplicate,
                    planned=request.planned or verdict.planned,
                )
                permit = permit if verdict.permit is GRANTED else verdict.permit
                if verdict.give_back is not nothing:
                    given.append(verdict.give_back)
                if verdict.note:
                    notes.append(verdict.note)
                looks.append(partial(_look_again, gate, verdict))
            again = partial(_first_objection, tuple(looks))
            objection = again(request.arguments)  # some gates have waited
            if objection is not None:
                return objection
            complete = True
        finally:
            if not complete:
                _all_back(given)
        note = "\n".join(notes)
        give_back = partial(_all_back, given)
        return Allow(request.arguments, request.on_duplicate, give_back, note, again, permit, self._refresh)

    @property
    def agents(self) -> tuple[str, ...]:
        """See ``Reviewer``."""
        return ()

    def tool(self, skill: OfferedSkill) -> ToolSchema | None:
        """See ``Reviewer``."""
        if not skill.available or skill.audience != "everyone":
            return None
        if not (self.allowed.allowed(skill) and self.enabled.enabled(skill.name)):
            return None
        known = self._tools.get(skill.name)
        if known is None or known[0] != skill:  # each iteration asks about every skill again
            known = self._tools[skill.name] = (skill, self._schema(skill))
        return known[1]

    def _schema(self, skill: OfferedSkill) -> ToolSchema | None:
        """The schema that the model gets, without references, which some servers refuse; None if there can be
        none."""
        try:
            parameters = inlined(self._duplicates.parameters(skill), FOREIGN_PARTS)
        except ValueError as error:
            _logger.warning("skill %r of module %r is not offered: its schema: %s", skill.name, skill.module, error)
            return None
        return ToolSchema(skill.name, skill.description, parameters)


def build_chain(
    settings: GateSettings,
    state: GateState,
    *,
    motions: Callable[[], int | None] | None = None,
    pose: Callable[[], PlanarPose | None] = lambda: None,
    permit: Callable[[CallRequest], Permit] | None = None,
    refresh: Callable[[], Awaitable[None]] = nothing_newer,
) -> GateChain:
    """Return the chain of an agent. ``motions`` returns how many may begin without a plan, by default as for a
    language model. ``permit`` returns the operator's permit for a call; ``refresh`` is ``SkillCatalog.refresh``.
    Raises ``UserError`` for a user's gate that can't be made.

    The order has reasons. What costs nothing comes first. Nobody is asked about arguments that do not fit. Users'
    gates see them before plans are compared, so a gate that changes arguments can't lead around a plan. The operator
    is asked last, and never again about what was rejected. Pause and step come after all that waits, so that nothing
    that was approved in the meantime begins while the agent is paused. When all that waits is over, gates look again
    (``Allow.again``): a skill may have been disabled or changed meanwhile, and the robot be elsewhere. Leases are the
    broker's.
    """
    duplicates = DuplicatesGate(settings.duplicates, agent=state.agent)
    gates: list[Gate] = [state.allowed, state.enabled, duplicates, ArgumentsGate()]
    if settings.gates:
        gates += [*(load_gate(name) for name in settings.gates), ArgumentsGate()]
    gates += [
        RejectedGate(state.rejections),
        PlanGate(
            state.plans,
            Zones(settings.zones),
            state.free_motions,
            motions=motions or settings.plan.free,
            pose=pose,
        ),
        ApprovalGate(state.approvals, settings.approval.rules, state.stopped, agent=state.agent),
    ]
    if permit is not None:
        gates.append(PermitGate(permit))
    return GateChain(gates, allowed=state.allowed, enabled=state.enabled, duplicates=duplicates, refresh=refresh)


async def _verdict(gate: Gate, request: CallRequest) -> Verdict:
    """Return the verdict of a gate; one that fails lets nothing pass."""
    try:
        verdict = await gate.review(request)
    except asyncio.CancelledError as error:
        if not is_stray(error):
            raise
        _logger.exception("gate %s failed", type(gate).__name__)
        return _failed(gate, stray_cancellation("it"))
    except Exception as error:
        _logger.exception("gate %s failed", type(gate).__name__)
        return _failed(gate, error)
    return _no_answer(gate, why) if (why := verdict_fault(verdict)) else verdict


def _look_again(gate: Gate, verdict: Allow, arguments: Mapping[str, Any]) -> Refuse | None:
    try:
        objection = verdict.again(arguments)
    except Exception as error:
        _logger.exception("gate %s failed", type(gate).__name__)
        return _failed(gate, error)
    return _no_answer(gate, why) if (why := objection_fault(objection)) else objection


def _first_objection(looks: Sequence[_Look], arguments: Mapping[str, Any]) -> Refuse | None:
    return next((refusal for look in looks if (refusal := look(arguments)) is not None), None)


def _no_answer(gate: Gate, why: str) -> Refuse:
    _logger.error("gate %s gave no answer that can be used: %s", type(gate).__name__, why)
    return Refuse(f"Not run: the gate {type(gate).__name__} gave no answer that can be used ({redacted(why)})")


def _failed(gate: Gate, error: Exception) -> Refuse:
    why = f"{type(error).__name__}: {redacted(str(error))}"
    return Refuse(f"Not run: the gate {type(gate).__name__} failed ({why})")


def _all_back(given: list[Callable[[], None]]) -> None:
    """Give everything back once, the newest first, also where that of one gate fails."""
    while given:
        give_back = given.pop()
        try:
            give_back()
        except Exception:
            _logger.exception("what a gate has allowed was not given back")
