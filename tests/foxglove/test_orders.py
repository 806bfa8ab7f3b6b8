"""One viewer's orders are carried out as they were sent, and what stops waits for nothing that is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, cast

import pytest

from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.client.orders import Order, OrderReport
from dimos_streams.errors import SkillError
from dimos_streams.foxglove.door.arrivals import HasLeft
from dimos_streams.foxglove.order_line import MAX_WAITING
from dimos_streams.foxglove.orders import ORDERS, Operator, OrderAnswer
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView
from tests.foxglove.test_server import shown
from tests.foxglove.viewer import viewing
from tests.helpers import until

pytestmark = pytest.mark.feature("I2")
BY_NAME = {order.name: order for order in ORDERS}


class Bridge:
    """A bridge that notes what it is asked for, and answers when it may."""

    def __init__(self, *slow: str) -> None:
        self.asked: list[str] = []
        self.stopped: list[int] = []
        self.answers = asyncio.Event()
        self._slow = slow

    async def stops(self) -> list[int]:
        await self._answer("stops")
        return list(self.stopped)

    async def order(
        self, order: Order, robot: str = "", reason: str = "", *, seen: Collection[int] | None = None
    ) -> OrderReport:
        name = order.removeprefix("/robots")
        await self._answer(name if seen is None else f"{name} {list(seen)}")
        return OrderReport(text=name)

    async def call_to_close(self, skill: str, *args: Any, **terms: Any) -> CallView:
        await self._answer(f"/{skill}")
        return CallView(
            call_id="c",
            skill=skill,
            module="agent",
            caller="viewer",
            parent="",
            arguments={},
            state="closed",
            outcome=Outcome.COMPLETED,
        )

    async def _answer(self, name: str) -> None:
        self.asked.append(name)
        if name in self._slow:
            await self.answers.wait()


class Viewer:
    """A viewer, or several, whose orders arrive as they are given."""

    def __init__(self, bridge: Bridge, outdated_s: float = 0.0) -> None:
        self._operator = Operator(cast(HttpGateway, bridge), "viewer", lambda: outdated_s)
        self.has_left = False

    def __call__(self, name: str, viewer: int = 1, **fields: str) -> asyncio.Task[OrderAnswer]:
        order = BY_NAME[name]
        giving = self._operator.carry_out(order, order.request(**fields), viewer, lambda: self.has_left)
        return asyncio.create_task(giving)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.virtual_time
async def test_orders_are_carried_out_as_they_were_sent() -> None:
    bridge = Bridge("/stop")
    give = Viewer(bridge)
    names = ("/stop", "/resume", "/release", "/pause")
    orders = [give(name) for name in names]
    await settled()
    assert bridge.asked == ["/stop", "/pause"], "what stops waits for nothing that it does not depend on"
    bridge.answers.set()
    done = await asyncio.gather(*orders, return_exceptions=True)
    assert bridge.asked == ["/stop", "/pause", "stops", "/release []"]
    assert "/resume is not carried out: /pause came after it" in str(done[1])


@pytest.mark.virtual_time
async def test_after_a_standstill_nothing_is_done_for_a_viewer_that_has_left_but_what_stops() -> None:
    bridge = Bridge()
    give = Viewer(bridge, outdated_s=0.4)
    orders = [give("/release"), give("/stop"), give("/resume", agent="robot1")]
    await settled()
    assert bridge.asked == ["/stop"]
    give.has_left = True
    released, stopped, resumed = await asyncio.gather(*orders, return_exceptions=True)
    assert "/release is not carried out: /stop came after it" in str(released)
    assert (str(resumed), isinstance(stopped, OrderAnswer)) == (
        "/resume is not carried out: its viewer left meanwhile",
        True,
    )
    give.has_left = False
    await give("/release")
    assert bridge.asked == ["/stop", "stops", "/release []"], "whoever is there is served"


@pytest.mark.virtual_time
async def test_a_resume_that_has_begun_comes_before_the_pause_behind_it() -> None:
    bridge = Bridge("/resume")
    give = Viewer(bridge)
    orders = [give("/resume", agent="robot1"), give("/pause"), give("/stop")]
    orders += [give("/pause", viewer=2), give("/pause", agent="robot2/agent")]
    await settled()
    others = "another viewer's orders are no concern, nor those to another agent"
    assert bridge.asked == ["/resume", "/stop", "/pause", "/pause"], others
    bridge.answers.set()
    await asyncio.gather(*orders)
    assert bridge.asked[4:] == ["/pause"]


@pytest.mark.parametrize(
    ("released", "stopped", "is_refused"),
    [
        ("", "", True),
        ("robot1", "", True),
        ("", "robot1", True),
        ("robot1/arm", "robot1", True),
        ("robot1", "robot2", False),
        ("robot1", "robot11", False),
    ],
)
@pytest.mark.virtual_time
async def test_no_release_undoes_a_stop_that_was_sent_after_it(released: str, stopped: str, is_refused: bool) -> None:
    bridge = Bridge("stops")
    give = Viewer(bridge)
    release = give("/release", robot=released)
    await settled()
    stop = give("/stop", robot=stopped)
    await settled()
    assert bridge.asked == ["stops", "/stop"], "a stop does not wait for a release"
    bridge.stopped = [7]
    bridge.answers.set()
    await stop
    if is_refused:
        with pytest.raises(SkillError, match="/release is not carried out: /stop came after it"):
            await release
        assert len(bridge.asked) == 2
    else:
        assert (await release).done


@pytest.mark.virtual_time
async def test_a_release_that_is_under_way_names_the_stops_from_before() -> None:
    bridge = Bridge("/release [7]")
    bridge.stopped = [7]
    give = Viewer(bridge)
    release = give("/release")
    await settled()
    stop = give("/stop")
    await settled()
    assert bridge.asked == ["stops", "/release [7]", "/stop"], "the bridge refuses it if the stop comes first"
    bridge.answers.set()
    await asyncio.gather(release, stop)


@pytest.mark.virtual_time
async def test_stopping_has_room_whatever_else_waits() -> None:
    bridge = Bridge("/decide", "/pause", "/stop")
    give = Viewer(bridge)
    names = [*["/approve"] * (MAX_WAITING + 2), *["/pause"] * (MAX_WAITING + 2), "/stop"]
    orders = [give(name, 1, **({"approval": "a@1"} if name == "/approve" else {})) for name in names]
    await settled()
    assert bridge.asked == ["/decide", *["/pause"] * MAX_WAITING, "/stop"]
    refused = [order.exception() for order in orders if order.done()]
    assert [str(why) for why in refused] == [
        f"{MAX_WAITING} orders of this viewer have no answer yet; wait for one"
    ] * 4
    bridge.answers.set()
    await asyncio.gather(*orders, return_exceptions=True)


@pytest.mark.virtual_time
async def test_an_order_does_not_wait_for_ever_for_those_before_it() -> None:
    bridge = Bridge("/decide")
    give = Viewer(bridge)
    first, second = give("/approve", approval="a@1"), give("/resume")
    with pytest.raises(SkillError, match="not carried out: /approve, which came before, has had no answer for long"):
        await second
    bridge.answers.set()
    await first


def test_orders_arrive_as_they_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived, left = list[int](), list[HasLeft]()

    async def note(self: Operator, order: Any, request: Any, viewer: int, has_left: HasLeft) -> OrderAnswer:
        arrived.append(int(request.reason))
        left.append(has_left)
        return OrderAnswer(done=True, text="")

    monkeypatch.setattr(Operator, "carry_out", note)

    async def scenario() -> None:
        async with shown() as show:
            async with viewing(show.url) as viewer:
                await viewer.until(lambda: len(viewer.services) == 6)
                names = ("/stop", "/pause", "/resume")
                orders = [
                    asyncio.create_task(viewer.call(names[number % 3], {"reason": f"{number}"}))
                    for number in range(100)
                ]
                assert all(answer["done"] for answer in await asyncio.gather(*orders))
                await until(lambda: len(arrived) == 100)
                assert not left[0]()
            await until(left[0])

    asyncio.run(scenario())
    assert arrived == [*range(100)]
