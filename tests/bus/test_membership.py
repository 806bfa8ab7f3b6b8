"""A bus stays in its multicast group when the network interface by which it joined goes, and another one comes."""

from __future__ import annotations

import asyncio
import socket
import sys

import pytest

from dimos_streams.bus import create_bus, packet_filter
from dimos_streams.bus.lcm import guard, membership
from dimos_streams.bus.lcm.url import UdpmUrl
from tests.helpers import until


def _unknown() -> list[tuple[int, str]]:
    raise PermissionError


@pytest.mark.parametrize("without_library", [False, True])
def test_a_membership_that_was_lost_is_renewed(
    without_library: bool, bus_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(membership, "_RENEW_S", 0.001)
    if without_library:
        monkeypatch.setitem(sys.modules, "lcm", None)
    url = UdpmUrl.parse(bus_url)

    async def scenario() -> None:
        before = packet_filter.open_fds()
        bus = create_bus(bus_url)
        await bus.open()
        [receiver] = guard.sockets_of(before, url.port)

        def leave() -> bool:
            """Leave the group, as the system does where the interface goes; return False if it was no member."""
            group = socket.inet_aton(url.group) + bytes(4)
            with packet_filter.duplicate(receiver) as own:
                try:
                    own.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, group)
                except OSError:
                    return False
                return True

        assert leave()
        await until(leave)
        with monkeypatch.context() as without_netlink:
            without_netlink.setattr(socket, "if_nameindex", _unknown)
            await until(leave)
            await bus.close()
            before = packet_filter.open_fds()
            await bus.open()
            [receiver] = guard.sockets_of(before, url.port)
            assert leave()
            await until(leave)
        assert f"multicast to {url.group} takes another network interface" in caplog.text
        await bus.close()

    asyncio.run(scenario())
