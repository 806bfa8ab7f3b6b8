"""What the kernel throws away is known, on real sockets."""

from __future__ import annotations

import asyncio
import math
import socket
import sys
from pathlib import Path

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.overflow import Overflow


def overflow() -> None:
    """Have the kernel throw datagrams away."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as full, socket.socket(type=socket.SOCK_DGRAM) as sender:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        full.bind(("127.0.0.1", 0))
        for _ in range(100):
            sender.sendto(bytes(1000), full.getsockname())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's count is Linux's")
def test_a_look_says_whether_more_was_thrown_away_since_the_last() -> None:
    kernel = Overflow()
    assert not kernel.grew(0.0), "what was before is no matter"
    overflow()
    assert not kernel.grew(0.2), "looks cost, and too many are not taken"
    assert kernel.grew(0.25)


@pytest.mark.parametrize("text", [None, "", "Udp: InDatagrams\nUdp: 5\n", "Udp: RcvbufErrors\nUdp: many\n"])
def test_without_a_count_nothing_is_known(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "snmp").write_text(text)
    kernel = Overflow(tmp_path / "snmp")
    assert not any(kernel.grew(now) for now in (0.0, 1.0, 2.0))


@pytest.mark.live
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's count is Linux's")
def test_subscriptions_may_have_missed_what_the_kernel_had_no_room_for(bus_url: str) -> None:
    async def main() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        came = asyncio.Event()
        subscription = bus.subscribe("/a", lambda channel, data: came.set())

        async def one_comes() -> None:
            came.clear()
            bus.publish("/a", b"")
            await came.wait()

        await one_comes()
        assert subscription.missed_at == -math.inf
        overflow()
        while subscription.missed_at == -math.inf:
            await one_comes()
            await asyncio.sleep(0.01)
        await bus.close()

    asyncio.run(main())
