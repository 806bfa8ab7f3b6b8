"""What nobody asks for is neither offered to a model nor taken over from who refuses."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.policies.gates.settings import ApprovalSettings
from dimos_streams.skill import Audience
from tests.agent.policies.gate_bench import GateBench
from tests.agent.policies.gate_inputs import Events, offered


@pytest.mark.parametrize(("audience", "is_offered"), [("everyone", True), ("operator", False), ("bridge", False)])
def test_skills_for_others_are_not_offered(audience: Audience, is_offered: bool) -> None:
    skill = offered().model_copy(update={"audience": audience})
    assert (GateBench().chain.tool(skill) is not None) is is_offered


@pytest.mark.virtual_time
async def test_who_rejects_a_call_changes_nothing_in_it() -> None:
    made = ApprovalRegistry(ApprovalSettings(), Events().emit, agent="agent")
    asking = asyncio.create_task(made.ask("drop", {"n": 1}, missions=("m",)))
    await asyncio.sleep(0)
    (pending,) = made.pending()
    view = made.decide(pending.id, "reject", {"n": 2})
    assert (view.arguments, view.state) == ({"n": 1}, "rejected")
    assert made.decide(pending.id, "reject", {"n": 3}) == view
    assert (await asking).arguments == {"n": 1}
