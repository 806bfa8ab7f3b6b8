"""The last order of a hub, and the calls that it has overtaken."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.fleet.commands import Command
from dimos_streams.fleet.last_order import LastOrder, OrderNote
from dimos_streams.fleet.protocol import MAX_EXPIRY_S


def command(id: int, path: str) -> Command:
    return Command.model_validate(
        {
            "id": id,
            "key": f"key {id}",
            "stream": "stream-of-these-commands",
            "expires_at_s": 10.0,
            "asked_by": "ann",
            "role": "operator",
            "method": "POST",
            "path": path,
            "body": {"skill": "follow"},
        }
    )


def test_an_order_that_comes_late_does_not_replace_a_newer_one() -> None:
    last = LastOrder(lambda note: None)
    last.note(command(10, "/robots/stop"))
    last.note(command(5, "/calls/cancel"))
    assert "an operator has stopped the robot" in last.against(command(7, "/calls"))
    assert not last.against(command(11, "/calls"))
    last.note(command(12, "/calls/cancel"))
    assert "all calls were ended" in last.against(command(11, "/calls"))


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("steady_s", "wall_s", "counts"),
    [(10, 10, True), (10, 5000, True), (-10, 10, True), (-10, -10, True), (400, 10, True), (400, 400, False),
     (-10, 400, False), (400, -10, False)],
)  # fmt: skip
async def test_an_order_of_before_a_restart_is_as_old_as_the_clock_says_by_which_it_is_younger(
    steady_s: float, wall_s: float, counts: bool
) -> None:
    last = LastOrder(lambda note: None)
    at, utime = clock.steady() - steady_s, clock.utime() - int(wall_s * 1e6)
    last.restore(OrderNote(id=10, kind="stop", at=at, utime=utime))
    assert bool(last.against(command(9, "/calls"))) == counts
    assert not last.against(command(11, "/calls"))


@pytest.mark.virtual_time
async def test_an_order_of_a_hub_that_counts_anew_is_noted_once_those_of_before_are_over() -> None:
    last = LastOrder(lambda note: None)
    last.note(command(1000, "/robots/stop"))
    await asyncio.sleep(MAX_EXPIRY_S - 60.0)
    assert last.against(command(1, "/calls")).endswith(
        "; if the hub's database was put back from a copy since, its calls begin again in 60 s"
    )
    await asyncio.sleep(61.0)
    assert not last.against(command(2, "/calls"))
    last.note(command(3, "/robots/stop"))
    assert last.against(command(2, "/calls"))
