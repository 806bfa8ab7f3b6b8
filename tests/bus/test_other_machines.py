"""A bus that stays on this machine hears no other one, on whichever interface its group is joined."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from functools import partial

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm import guard
from tests.helpers import until
from tests.namespaces import INTERFACE, Machine, linked

GROUP, PORT = "239.255.76.67", 27668
CHANNEL = "/skill_calls"


def send(machine: Machine, data: bytes, address: str) -> None:
    """Send what any program there can."""
    with machine.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"LC02\0\0\0\1" + CHANNEL.encode() + b"\0" + data, (address, PORT))


def hear(messages: list[bytes], _: str, data: bytes) -> None:
    """Keep what comes on the channel."""
    messages.append(data)


@pytest.mark.parametrize("without_library", [False, True])
@pytest.mark.feature("F6")
def test_another_machine_is_not_heard_unless_the_url_crosses_networks(
    without_library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if without_library:
        monkeypatch.setitem(sys.modules, "lcm", None)
    heard: dict[int, list[bytes]] = {0: [], 1: []}
    sockets_of = guard.sockets_of

    def sockets_late(before: set[int], port: int) -> list[int]:
        send(link.there, b"while there is no filter yet", GROUP)
        return sockets_of(before, port)

    async def scenario() -> None:
        monkeypatch.setattr(guard, "sockets_of", sockets_late)
        with link.here.entered():
            buses = {ttl: create_bus(f"udpm://{GROUP}:{PORT}?ttl={ttl}") for ttl in heard}
            for ttl, bus in buses.items():
                await bus.open()
                bus.subscribe(CHANNEL, partial(hear, heard[ttl]))

        def reaches() -> bool:
            """Any datagram may get lost."""
            send(link.there, b"to this machine alone", link.here.address)
            send(link.there, b"from elsewhere", GROUP)
            send(link.here, b"from here", GROUP)
            return b"from elsewhere" in heard[1] and all(b"from here" in messages for messages in heard.values())

        await until(reaches)
        for bus in buses.values():
            await bus.close()

    with linked() as link:
        for machine in (link.here, link.there):
            with machine.entered():
                subprocess.run(f"ip route add default dev {INTERFACE}".split(), check=True)
        asyncio.run(scenario())
    assert {ttl: {*messages} for ttl, messages in heard.items()} == {
        0: {b"from here"},
        1: {b"from elsewhere", b"from here"},
    }
