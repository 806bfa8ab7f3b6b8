"""What the kernel throws away of this process's messages is known, on real sockets."""

from __future__ import annotations

import asyncio
import itertools
import math
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm.bus import LcmBus
from dimos_streams.bus.lcm.overflow import Overflow, thrown_away
from dimos_streams.bus.lcm.udpm import UdpmSocket
from dimos_streams.bus.lcm.url import UdpmUrl

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's count is Linux's")


class PlainBus(LcmBus):
    """One whose socket is emptied by the loop alone, and is full while that does something else."""

    def _create(self) -> UdpmSocket:
        return UdpmSocket(UdpmUrl.parse(self.url))


@asynccontextmanager
async def opened(bus: LcmBus) -> AsyncIterator[LcmBus]:
    await bus.open()
    try:
        yield bus
    finally:
        await bus.close()


def overflow() -> None:
    """Have the kernel throw datagrams away that are nobody's here."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as full, socket.socket(type=socket.SOCK_DGRAM) as sender:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        full.bind(("127.0.0.1", 0))
        for _ in range(100):
            sender.sendto(bytes(1000), full.getsockname())


async def heartbeats(bus: LcmBus, while_true: Callable[[], bool], between: Callable[[], None] = lambda: None) -> None:
    """Have a process say something to itself, among others, now and then."""
    while while_true():
        between()
        bus.publish("/a", b"alive")
        await asyncio.sleep(0.02)


@on_linux
def test_the_kernels_count_grows_with_what_it_throws_away() -> None:
    before = thrown_away()
    overflow()
    after = thrown_away()
    assert before is not None
    assert after is not None
    assert after > before


def test_a_look_says_whether_more_was_thrown_away_while_one_was_not_heard(tmp_path: Path) -> None:
    counters, counts = tmp_path / "snmp", itertools.count(7)

    def overflow() -> None:  # the machine's own count grows with other programs, too
        counters.write_text(f"Udp: InDatagrams RcvbufErrors\nUdp: 5 {next(counts)}\n")

    overflow()
    kernel = Overflow(counters)
    assert not kernel.missed(0.0), "what was before is no matter"
    kernel.said(b"1", 0.0)
    overflow()
    assert not kernel.missed(0.2), "looks cost, and too many are not taken"
    assert not kernel.missed(0.25), "the message may come yet"
    assert kernel.missed(0.5)
    assert not kernel.missed(0.75)
    overflow()
    assert kernel.missed(5.4), "it was deaf a moment ago"
    overflow()
    assert not kernel.missed(5.65), "by now it may have been another one's"


@on_linux
def test_it_is_another_socket_that_has_no_room_while_its_own_messages_come() -> None:
    kernel = Overflow()
    for each in range(20):
        kernel.said(str(each).encode(), each / 2)
        overflow()
        kernel.heard(str(each).encode())
        assert not kernel.missed(each / 2 + 0.4)


def test_a_message_that_does_not_come_is_nothing_while_the_kernel_has_room(tmp_path: Path) -> None:
    counters = tmp_path / "snmp"
    counters.write_text("Udp: InDatagrams RcvbufErrors\nUdp: 5 7\n")
    kernel = Overflow(counters)
    assert not kernel.missed(0.0)
    kernel.said(b"1", 0.0)
    assert not any(kernel.missed(now) for now in (0.5, 1.0, 2.0))


@pytest.mark.parametrize("text", [None, "", "Udp: InDatagrams\nUdp: 5\n", "Udp: RcvbufErrors\nUdp: many\n"])
def test_without_a_count_nothing_is_known(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "snmp").write_text(text)
    kernel = Overflow(tmp_path / "snmp")
    kernel.said(b"1", 0.0)
    assert not any(kernel.missed(now) for now in (0.0, 1.0, 2.0))


@pytest.mark.live
@on_linux
def test_subscriptions_may_have_missed_what_the_kernel_had_no_room_for(bus_url: str) -> None:
    async def main() -> None:
        async with opened(PlainBus(bus_url)) as bus, opened(PlainBus(bus_url)) as flood:
            subscription = bus.subscribe("/a", lambda channel, data: None)

            def too_much() -> None:
                for _ in range(200):
                    flood.publish("/a", bytes(5000))

            await heartbeats(bus, lambda: subscription.missed_at == -math.inf, too_much)

    asyncio.run(main())


@pytest.mark.live
@on_linux
@pytest.mark.feature("F5")
def test_what_another_program_has_no_room_for_was_not_missed_here(bus_url: str) -> None:
    async def main() -> None:
        bus = create_bus(bus_url)
        assert isinstance(bus, LcmBus)
        async with opened(bus):
            subscription = bus.subscribe("/a", lambda channel, data: None)
            await heartbeats(bus, lambda: subscription.statistics().handled < 60, overflow)
            assert subscription.missed_at == -math.inf

    asyncio.run(main())
