"""Calls that begin in turn: whoever leaves meanwhile leaves no robot that moves behind."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest

from dimos_streams.cli.bridge_client.calls.beginning import begin_in_turn
from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions
from dimos_streams.cli.bridge_client.connection import BridgeAddress
from dimos_streams.cli.bridge_client.robot_orders import OrderTarget, give
from dimos_streams.client.http_gateway import Begun
from dimos_streams.errors import CallInDoubtError, CallRejectedError

pytestmark = pytest.mark.virtual_time
BEGUN = Begun("c1", 7)


async def test_a_call_that_begins_after_its_caller_has_left_is_ended() -> None:
    ended: list[str] = []
    asked = asyncio.Event()

    async def ask(wait_s: float) -> Begun:
        asked.set()
        await asyncio.sleep(1.0)
        return BEGUN

    async def cancel(call_id: str) -> None:
        ended.append(call_id)

    beginning = asyncio.create_task(begin_in_turn(ask, cancel, 0.0))
    await asked.wait()
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    assert ended == ["c1"]


@pytest.mark.parametrize(("resource", "asked_s"), [("base", [0.0, 1.0, 1.0, 0.5]), ("", [0.0])])
async def test_only_what_another_call_holds_is_waited_for_a_little_at_a_time(
    resource: str, asked_s: list[float]
) -> None:
    asked: list[float] = []

    async def ask(wait_s: float) -> NoReturn:
        asked.append(wait_s)
        await asyncio.sleep(wait_s)
        raise CallRejectedError("not now", holder="another", resource=resource)

    async def cancel(call_id: str) -> NoReturn:
        raise AssertionError(call_id)

    with pytest.raises(CallRejectedError, match="not now"):
        await begin_in_turn(ask, cancel, 2.5)
    assert asked == asked_s


async def test_a_stop_whose_answer_was_lost_may_have_been_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def post(*args: Any, **terms: Any) -> NoReturn:
        raise CallInDoubtError("no answer came; it may have arrived")

    monkeypatch.setattr(BridgeAddress, "post", post)
    (result,) = await give("/robots/stop", "", "", [OrderTarget("run-1", BridgeAddress("http://127.0.0.1:9"))])
    assert (result.done, result.text) == (False, "NOT CONFIRMED: no answer came; it may have arrived")


@pytest.mark.parametrize(("timeout_s", "waits_s"), [(None, 60.0), (3.0, 3.0), (90.0, 60.0)])
async def test_what_another_call_holds_is_waited_for_no_longer_than_for_the_whole_call(
    timeout_s: float | None, waits_s: float
) -> None:
    options = CallOptions(until="close", timeout_s=timeout_s, as_json=False, lease_wait_s=60.0)
    assert options.waits_s == waits_s
