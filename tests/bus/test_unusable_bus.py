"""A bus of LCM that can't be opened: the error says what is wrong with machine or process, and what mends it."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import pytest

from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.bus.url import check_route
from dimos_streams.cli.system.lcm_checks import check_lcm
from dimos_streams.errors import BusError
from tests.helpers import few_files, no_threads, until
from tests.ports import free_udp_port


@pytest.fixture(params=["lcm's library", "python's sockets"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "lcm's library":
        request.getfixturevalue("lcm_library")
    else:
        monkeypatch.setitem(sys.modules, "lcm", None)
    return request.param


def test_a_port_that_a_program_has_for_itself_is_an_error_that_names_another(implementation: str) -> None:
    """Nobody else hears what is sent to it."""
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


def test_a_machine_without_a_route_is_an_error_that_says_what_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    check_route("udpm://239.255.76.67:7667")
    monkeypatch.setattr(UdpmUrl, "route_problem", lambda self: "Network is unreachable")
    check_route("memq://")
    with pytest.raises(BusError, match=r"no route for multicast to 239\.1\.2\.3 .*ip route add 224"):
        check_route("udpm://239.1.2.3:4567")


def test_a_process_with_too_many_files_is_an_error(bus_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LCM's library would crash."""
    pytest.importorskip("lcm")
    monkeypatch.setattr("dimos_streams.bus.lcm.bus._SELECT_LIMIT", 3)

    async def scenario() -> None:
        bus = create_bus(bus_url)
        with pytest.raises(BusError, match="file descriptor below 3; too many files are open"):
            await bus.open()
        await bus.close()

    asyncio.run(scenario())


def test_a_machine_that_can_not_send_to_the_group_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setitem(sys.modules, "lcm", None)
    monkeypatch.setattr("dimos_streams.bus.lcm.bus.UdpmSocket", refuse)

    async def scenario() -> None:
        bus = create_bus("udpm://239.1.2.3:4567")
        for problem, why in (
            (None, "LCM cannot use 'udpm://239.1.2.3:4567.ttl=0'"),
            ("gone", r"\(gone\): `ip route"),
        ):
            monkeypatch.setattr(UdpmUrl, "route_problem", lambda self, problem=problem: problem)
            with pytest.raises(BusError, match=why):
                await bus.open()

    asyncio.run(scenario())
    monkeypatch.undo()
    assert UdpmUrl("239.255.76.67", 7667).route_problem() is None
    assert UdpmUrl("no address", 7667).route_problem()


def test_without_a_thread_for_lcm_no_bus_is_opened(bus_url: str) -> None:
    async def opened_without_thread() -> None:
        with no_threads(), pytest.raises(BusError, match=r"LCM needs a thread: .*`ulimit -u`"):
            await create_bus(bus_url).open()

    asyncio.run(opened_without_thread())


def test_without_room_for_the_files_of_lcm_no_bus_is_opened(bus_url: str) -> None:
    async def opened_without_room() -> None:
        with few_files(8), pytest.raises(BusError, match="`ulimit -n`"):
            await create_bus(bus_url).open()

    asyncio.run(opened_without_room())
