"""What a run prints and counts is what users and models have made, and not how the bridge asks an agent about it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dimos_streams.cli.terminal.call_counts import CallCounts
from dimos_streams.cli.terminal.reporter import create_reporter
from tests.agent.policies.brain import Brain
from tests.agent.policies.lookout_world import lookout_world, round_with
from tests.bridge.scene import collect
from tests.helpers import until


@pytest.mark.parametrize(
    ("decision", "said", "ended"),
    [
        ("approve", "drop              completed: dropped bag", {"completed": 3}),
        ("reject", 'rejected: Not run: drop(what="bag") was not', {"completed": 1, "failed": 1, "rejected": 1}),
    ],
)
@pytest.mark.virtual_time
async def test_a_run_shows_the_call_and_not_its_review(
    decision: str, said: str, ended: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    async with lookout_world(Brain(round_with("drop", what="bag"))) as w:
        await w.say()
        await until(w.agent.core.gate_state.approvals.pending)
        (waits,) = w.agent.core.gate_state.approvals.pending()
        await w.operator("decide", approval=waits.id, decision=decision)
        await w.lookout_closed("round")
        await asyncio.sleep(3)
        events = await collect(w.bridge.broker)
        (review,) = await w.views("review_call")
    assert review.call_id in {event.call_id for event in events}, "it is in the journal all the same"
    reporter, counts = create_reporter(as_json=False, plain=True), CallCounts()
    for event in events:
        reporter.tool_event(event)
        counts.count(event)
    shown = capsys.readouterr().out
    assert said in shown
    assert "review_call" not in shown
    assert counts.to_dict() == ended
