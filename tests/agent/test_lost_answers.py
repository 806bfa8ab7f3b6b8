"""Calls whose answer is lost on the way: each begins once, and what may have begun is not given back."""

from __future__ import annotations

import asyncio
import random

import pytest

from dimos_streams.agent.calls.call_memory import CallMemory
from dimos_streams.agent.calls.call_starts import CallStarts
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.client import asking_again
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.errors import CallInDoubtError, NoAnswerError
from tests.agent.stage import stage
from tests.client.losing import losing


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_again, "_ASK_AGAIN_S", (0.01, 0.01))


def test_a_call_whose_answer_was_lost_has_begun_once_and_is_known() -> None:
    async def main() -> None:
        async with stage(http=True) as s, losing(int(s.bridge.url.rpartition(":")[2]), answers=1) as url:
            starts = CallStarts(HttpGateway(url, rng=random.Random(1)), "me", CallMemory(), "start")
            call = OpenCall("", "think", arguments={"seconds": 9})
            await starts.start(call, None)
            assert [view.call_id for view in await s.bridge.broker.calls()] == [call.call_id]
            assert not starts.under_way

    asyncio.run(main())


def test_one_of_which_nobody_says_whether_it_has_begun_is_in_doubt_and_unwanted() -> None:
    async def main() -> None:
        async with stage(http=True) as s, losing(int(s.bridge.url.rpartition(":")[2]), answers=99) as url:
            memory = CallMemory()
            starts = CallStarts(HttpGateway(url, rng=random.Random(1)), "me", memory, "start")
            call = OpenCall("", "think", arguments={"seconds": 9})
            with pytest.raises(CallInDoubtError, match="not known whether the call has begun; if so, it is ended"):
                await starts.start(call, None)
            [begun] = await s.bridge.broker.calls()
            adopted = OpenCall(begun.call_id, "think", arguments={"seconds": 9})
            assert memory.claim_doubtful(adopted) is call
            assert call.asked_to_end

    asyncio.run(main())


def test_where_nobody_listens_nothing_has_begun(free_port: int) -> None:
    async def main() -> None:
        starts = CallStarts(
            HttpGateway(f"http://127.0.0.1:{free_port}", rng=random.Random(1)), "me", CallMemory(), "start"
        )
        with pytest.raises(NoAnswerError) as refused:
            await starts.start(OpenCall("", "think", arguments={}), None)
        assert not refused.value.may_have_arrived

    asyncio.run(main())
