"""A port of multicast that a program has for itself: nobody else hears what is sent to it."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.cli.system.lcm_checks import check_lcm
from dimos_streams.errors import BusError
from tests.helpers import until
from tests.ports import free_udp_port


@pytest.fixture(params=["lcm's library", "python's sockets"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "lcm's library":
        request.getfixturevalue("lcm_library")
    else:
        monkeypatch.setitem(sys.modules, "lcm", None)
    return request.param


def test_a_bus_that_would_hear_nothing_is_an_error_that_says_why(implementation: str) -> None:
    url = UdpmUrl("239.255.76.67", free_udp_port())
    bus = create_bus(str(url))
    got: list[bytes] = []

    async def hear_one() -> None:
        await bus.open()
        bus.subscribe("/x", lambda _, data: got.append(data))
        bus.publish("/x", b"x")
        await until(lambda: got == [b"x"])
        await bus.close()

    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind(("", url.port))
        for _ in range(2):
            with pytest.raises(BusError, match=f"UDP port {url.port} .*'udpm://.*:{url.port + 1}.ttl=0'"):
                asyncio.run(hear_one())
        [finding] = [each for each in asyncio.run(check_lcm(url)) if each.name == "bus"]
        assert finding.severity == "error"
        assert f"`ss -ulpn sport = :{url.port}`" in finding.text
    asyncio.run(hear_one())
