"""What viewers hear of their orders: done only where all of it has come true, and decided on what they have seen."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.client.orders import OrderReport
from dimos_streams.errors import SkillError
from dimos_streams.foxglove import services
from dimos_streams.foxglove.door.arrivals import Arrivals
from dimos_streams.foxglove.orders import ORDERS, Operator, OrderAnswer
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
from tests.helpers import until

pytestmark = pytest.mark.feature("I2")
BY_NAME = {order.name: order for order in ORDERS}


def approval(id: str, revision: int = 1) -> dict[str, Any]:
    """An approval as an agent lists it."""
    given: dict[str, Any] = {
        "id": id,
        "agent": "agent",
        "skill": "drop",
        "module": "arm",
        "arguments": {"what": "it"},
    }
    return {**given, "revision": revision, "created_utime": 1}


class Bridge:
    """A bridge whose agent answers as it is told to."""

    def __init__(
        self, outcome: Outcome | None = Outcome.COMPLETED, report: OrderReport | None = None, **results: Any
    ):
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._outcome, self._report, self._results = outcome, report, results

    async def order(self, *args: Any, **terms: Any) -> OrderReport:
        assert self._report is not None
        return self._report

    async def call_to_close(self, skill: str, arguments: dict[str, Any], **terms: Any) -> CallView:
        self.asked.append((skill, arguments))
        given: dict[str, Any] = {"call_id": "c", "skill": skill, "module": "agent", "caller": "viewer", "parent": ""}
        given |= {"arguments": arguments, "state": "closed", "outcome": self._outcome, "text": "said"}
        return CallView(**given, result=self._results.get(skill))


async def give(bridge: Bridge, name: str, **fields: str) -> OrderAnswer:
    operator, order = Operator(cast(HttpGateway, bridge), "viewer"), BY_NAME[name]
    return await operator.carry_out(order, order.request(**fields), 1)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.virtual_time
async def test_a_pause_is_done_once_all_velocity_gates_hold(held: bool) -> None:
    loose = {"gate": "gate", "problem": "deaf", "text": "it does not listen"}
    result = {"held": ["gate"] if held else [], "not_held": [] if held else [loose], "changed": True}
    assert await give(Bridge(pause=result), "/pause") == OrderAnswer(done=held, text="said")


@pytest.mark.parametrize(
    ("confirmed", "unsaved", "done"), [(True, "", True), (False, "", False), (True, "full", False)]
)
@pytest.mark.virtual_time
async def test_a_stop_is_done_once_it_is_confirmed_and_kept(confirmed: bool, unsaved: str, done: bool) -> None:
    report = OrderReport(text="told", confirmed=confirmed, unsaved=unsaved)
    assert await give(Bridge(report=report), "/stop") == OrderAnswer(done=done, text="told")


@pytest.mark.parametrize(
    ("outcome", "said"),
    [(Outcome.FAILED, "agent 'agent': said"), (None, "agent 'agent' has not answered within 10 s; call c goes on")],
)
@pytest.mark.virtual_time
async def test_an_order_that_an_agent_has_not_carried_out_is_refused(outcome: Outcome | None, said: str) -> None:
    with pytest.raises(SkillError) as refused:
        await give(Bridge(outcome), "/resume")
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        ("", [("approvals", {"approval": ""}), ("decide", {"approval": "a-1-1", "revision": 3})]),
        ("a-1", [("approvals", {"approval": "a-1"}), ("decide", {"approval": "a-1-1", "revision": 3})]),
        ("a-1-1@2", [("decide", {"approval": "a-1-1", "revision": 2})]),
    ],
)
@pytest.mark.virtual_time
async def test_a_decision_is_on_the_revision_that_was_seen(
    named: str, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    bridge = Bridge(approvals=[approval("a-1-1", revision=3)])
    await give(bridge, "/approve", approval=named)
    decided = {"decision": "approve", "reason": ""}
    assert bridge.asked == [
        (skill, {**arguments, **decided} if skill == "decide" else arguments) for skill, arguments in asked
    ]


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (["a-1-1", "a-1-2"], "say which `approval` is meant: a-1-1@1: drop(what=it); a-1-2@1: drop(what=it)"),
        ([], "no call waits for approval"),
    ],
)
@pytest.mark.virtual_time
async def test_nothing_is_decided_where_it_is_not_clear_on_what(waiting: list[str], said: str) -> None:
    bridge = Bridge(approvals=[approval(id) for id in waiting])
    with pytest.raises(SkillError) as refused:
        await give(bridge, "/reject")
    assert (str(refused.value), [skill for skill, _ in bridge.asked]) == (said, ["approvals"])


@pytest.mark.virtual_time
async def test_whoever_closes_waits_for_the_orders_that_are_under_way() -> None:
    ended: list[str] = []

    class Slow(Bridge):
        def close(self) -> None:
            ended.append("closed")

        async def order(self, *args: Any, **terms: Any) -> OrderReport:
            await asyncio.sleep(1.0)
            ended.append("ordered")
            return OrderReport(text="told")

    operator, order = Operator(cast(HttpGateway, Slow()), "viewer"), BY_NAME["/stop"]
    ordering = asyncio.create_task(operator.carry_out(order, order.request(), 1))
    await asyncio.sleep(0)
    await operator.close()
    assert ended == ["closed", "ordered"]
    await ordering


def test_an_order_that_was_refused_for_want_of_an_answer_is_not_carried_out_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(services, "_WITHIN_S", 0.02)
    outcomes: list[str] = []

    class Hanging:
        async def carry_out(self, *args: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                outcomes.append("given up")

    async def scenario() -> None:
        service = services.OrderService(BY_NAME["/stop"], cast(Operator, Hanging()), Arrivals())
        asked: Any = SimpleNamespace(payload=b"{}", client_id=1)
        with pytest.raises(services.Refused, match="/stop has no answer"):
            await asyncio.to_thread(service, asked)
        await until(lambda: outcomes == ["given up"])

    asyncio.run(scenario())
