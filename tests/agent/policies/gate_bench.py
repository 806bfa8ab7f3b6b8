"""A chain of gates by itself, for tests of them."""

from __future__ import annotations

import asyncio
from typing import Any

from dimos_streams.agent.policies.gates.base import CallRequest, Verdict
from dimos_streams.agent.policies.gates.chain import GateChain, build_chain
from dimos_streams.agent.policies.gates.gate_state import GateState
from dimos_streams.agent.policies.gates.settings import GateSettings
from dimos_streams.messages.planar import PlanarPose
from tests.agent.policies.gate_inputs import Events, offered, request, step

MOVE = {
    "type": "object",
    "properties": {"distance_m": {"type": "number"}, "x": {"type": "number"}, "y": {"type": "number"}},
    "additionalProperties": False,
}


class BenchPermit:
    """Holds while an event is set."""

    def __init__(self, let_go: asyncio.Event) -> None:
        self._let_go = let_go

    @property
    def holds(self) -> bool:
        return self._let_go.is_set()

    async def wait(self) -> None:
        await self._let_go.wait()


class GateBench:
    """A chain with the state of its gates."""

    def __init__(self, *, agent: str = "agent", **settings: Any) -> None:
        self.events = Events()
        self.settings = GateSettings(**settings)
        self.gate_state = GateState(self.settings, self.events.emit, step, agent=agent)
        state = self.gate_state
        self.enabled, self.approvals, self.plans = state.enabled, state.approvals, state.plans
        self.pose: PlanarPose | None = None
        self.paused = asyncio.Event()
        self.paused.set()
        self.chain: GateChain = build_chain(
            self.settings,
            self.gate_state,
            pose=lambda: self.pose,
            permit=self._permit,
        )

    def _permit(self, request: CallRequest) -> BenchPermit:
        return BenchPermit(self.paused)

    async def review(self, name: str = "move", policy: dict[str, Any] | None = None, **arguments: Any) -> Verdict:
        return await self.chain.review(request(offered(name, parameters=MOVE, **(policy or {})), **arguments))

    async def approved(self, *steps: tuple[str, dict[str, Any]]) -> None:
        """A plan that the operator has approved."""
        plan = self.plans.create("a goal", [{"skill": skill, "arguments": given} for skill, given in steps])
        task = asyncio.create_task(self.plans.submit(plan.id, ("m1",)))
        await asyncio.sleep(0)
        self.approvals.decide(self.approvals.pending()[0].id, "approve")
        await task
