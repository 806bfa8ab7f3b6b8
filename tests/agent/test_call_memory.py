"""What is remembered of calls that are over is bounded, whichever way it comes."""

from __future__ import annotations

from dimos_streams.agent.calls.call_memory import CallMemory
from dimos_streams.agent.calls.open_call import OpenCall


def test_everything_is_bounded() -> None:
    memory = CallMemory()
    memory.remember_recorded({str(number): None for number in range(1500)})
    assert [memory.closed(str(number)) is not None for number in (0, 499, 500, 1499)] == [False, False, True, True]
    doubts = [OpenCall("", "turn", arguments={"number": number}) for number in range(150)]
    for call in doubts:
        memory.doubt(call)
        memory.remember_given_up(OpenCall(str(call.arguments["number"]), "turn"))
    assert memory.claim_doubtful(doubts[49]) is None
    assert memory.claim_doubtful(doubts[50]) is doubts[50]
    assert memory.claim_doubtful(doubts[50]) is None, "it was claimed"
    assert [call.call_id for call in memory.given_up] == [str(number) for number in range(50, 150)]
