"""What doctor and errors advise about routes, by how far the URL says that messages go."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dimos_streams.bus.lcm import multicast_route
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.bus.url import check_route, why_local
from dimos_streams.cli.system.finding import Finding
from dimos_streams.cli.system.lcm_checks import check_lcm
from dimos_streams.errors import BusError
from tests.namespaces import INTERFACE, linked

HERE, ACROSS = (UdpmUrl.parse(f"udpm://239.255.76.67:27667?ttl={ttl}") for ttl in (0, 1))


@pytest.fixture
def alone() -> Iterator[None]:
    """A machine with a network interface, and no route for multicast."""
    with linked() as link, link.here.entered():
        yield


def ip(command: str) -> None:
    subprocess.run(command.split(), check=True)


def finding(url: UdpmUrl) -> Finding:
    return asyncio.run(check_lcm(url))[0]


@pytest.mark.slow
@pytest.mark.feature("H1")
def test_a_route_is_advised_on_the_link_that_leads_as_far_as_the_url_says(alone: None) -> None:
    for url, device in ((HERE, "lo"), (ACROSS, INTERFACE)):
        with pytest.raises(BusError, match=f"ip route add 224.0.0.0/4 dev {device}`"):
            check_route(str(url))
        assert finding(url).severity == "error"
        assert finding(url).commands[0] == f"ip route add 224.0.0.0/4 dev {device}"

    ip(finding(HERE).commands[0])
    assert finding(HERE).severity == "ok"
    nothing_crosses = finding(ACROSS)
    assert nothing_crosses.severity == "error"
    assert "'lo'" in nothing_crosses.text

    assert "'lo'" in why_local(str(ACROSS))

    ip(nothing_crosses.commands[0])
    assert why_local(str(ACROSS)) == ""
    assert "ttl=0" in why_local(str(HERE))
    assert "this machine only" in why_local("zenoh://")
    assert why_local("zenoh:///?interface=eth0&listen=10.0.0.1:0") == ""
    assert finding(ACROSS).severity == "ok"
    assert f"'{INTERFACE}'" in finding(ACROSS).text
    assert finding(HERE).severity == "ok"

    ip("ip route del 224.0.0.0/4")
    ip("ip link set lo down")
    with pytest.raises(BusError, match=r"`ip link set lo up && ip route add 224.0.0.0/4 dev lo`"):
        check_route(str(HERE))
    for command in finding(HERE).commands:
        ip(command)
    assert finding(HERE).severity == "ok"


def test_where_the_system_lists_no_interfaces_a_route_is_advised_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown() -> list[tuple[int, str]]:
        raise OSError("Address family not supported by protocol")

    monkeypatch.setattr(socket, "if_nameindex", unknown)
    assert multicast_route.route_commands(1)[0] == "ip route add 224.0.0.0/4 dev INTERFACE"


def test_the_longest_route_and_of_two_the_cheaper_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"]
    lines += ["eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0", "lo 000000E0 00000000 0001 0 0 9 000000F0 0 0 0"]
    lines += ["wlan0 000000E0 00000000 0001 0 0 5 000000F0 0 0 0", "down 000000E0 00000000 0000 0 0 0 000000F0 0 0 0"]
    table = tmp_path / "route"
    table.write_text("\n".join(lines))
    monkeypatch.setattr(multicast_route, "_ROUTES", table)
    assert multicast_route.route_interface("239.255.76.67") == "wlan0"
    assert multicast_route.route_interface("10.0.0.1") == "eth0"
    table.unlink()
    assert multicast_route.route_interface("239.255.76.67") is None
    monkeypatch.setattr(multicast_route, "link_interfaces", list)
    assert multicast_route.route_commands(1)[0].endswith("dev INTERFACE")
