"""An agent's answer of which the bridge only knows that it is lost permits nothing, and holds up nobody for ever."""

from __future__ import annotations

import pytest

from dimos_streams import clock
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from tests.agent.policies.brain import Brain
from tests.agent.policies.lookout_world import lookout_world, round_with
from tests.helpers import until

pytestmark = [pytest.mark.feature("A9", "D5"), pytest.mark.virtual_time]


async def test_a_call_whose_review_has_a_gap_does_not_begin_and_its_mission_ends() -> None:
    async with lookout_world(Brain(round_with("drop", what="bag"))) as w:
        said = await w.say()
        await until(lambda: w.agent.core.gate_state.approvals.pending())
        (view,) = await w.views("review_call")
        review = w.bridge.broker.ledger.calls.get(view.call_id)
        assert review is not None
        gap = ToolEvent(
            utime=clock.utime(),
            call_id=view.call_id,
            seq=review.last_seq + 1,
            type="gap",
            module="agent",
            skill=view.skill,
            caller=view.caller,
            text="events 2 to 2 of this call are lost",
        )
        review.apply(gap)
        ended = await w.lookout_closed("round")
        assert ended.outcome is Outcome.FAILED
        assert "agent 'agent' has said of 'drop' is lost" in ended.text
        await w.closed(said)
        assert w.robot.log_ == []
        await until(lambda: not w.agent.core.gate_state.approvals.pending())
