"""Events that are written while they are published, to readers that keep up, over real HTTP."""

from __future__ import annotations

import asyncio

import pytest

from tests.bridge.scene import event
from tests.bridge.serving import Served, Stream, served
from tests.helpers import until

_TURNS = 20
"""After so many turns of its loop a bridge with nothing to do waits for what comes next."""


async def settle() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def publish(bridge: Served, seq: int, text: str = "") -> None:
    broadcast = bridge.scene.bridge.broadcast
    broadcast.publish(broadcast.journal.append([event(seq, text=text)]))


def is_left_waiting(bridge: Served) -> bool:
    """Whether some client has not taken all that was written."""
    server = bridge.scene.bridge.endpoint.server
    assert server is not None
    return bool(server.connections._backed_up)


def test_an_event_is_on_its_way_when_it_has_been_published() -> None:
    async def work(stream: Stream) -> tuple[bool, bool]:
        await settle()
        before = stream.has_more()
        publish(bridge, 1)
        return before, stream.has_more()

    with served() as bridge:
        stream = bridge.stream()
        stream.block()
        assert bridge.run(work(stream)) == (False, True), "no task was to be woken first"
        assert [offset for offset, _ in stream.events(1)] == [1]


def test_what_a_client_leaves_waiting_comes_before_what_follows() -> None:
    async def work() -> int:
        seq, behind = 0, 0
        while behind < 20:
            seq += 1
            publish(bridge, seq, "x" * 20_000)
            await settle()
            behind += is_left_waiting(bridge)
        return seq

    with served() as bridge:
        stream = bridge.stream(receive_buffer=4096)
        count = bridge.run(work())
        assert [offset for offset, _ in stream.events(count)] == list(range(1, count + 1))
        assert count > 20, "the first ones were taken as they came"


@pytest.mark.slow
def test_a_client_that_takes_no_more_has_the_time_for_it_from_the_event_that_it_left() -> None:
    async def work() -> None:
        await settle()
        seq = 0
        while not is_left_waiting(bridge):
            seq += 1
            publish(bridge, seq, "x" * 20_000)
            # Only what is written at once: the tasks have no turn before it is left.

    with served(send_timeout_s=0.5, ping_s=1000.0) as bridge:
        bridge.stream(receive_buffer=4096).block()
        bridge.run(work())
        bridge.run(until(lambda: bridge.scene.bridge.broadcast.statistics().cut == 1))
