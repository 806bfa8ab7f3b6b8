"""Ports that are kept while nobody listens at them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dimos_streams.common.process.listening import KeptPort, listening_socket

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux keeps ports for a user")
HOST = "127.0.0.1"
SOMEBODY_ELSE = 65_533


@pytest.fixture
def kept(free_port: int) -> Iterator[KeptPort]:
    port = KeptPort(HOST, free_port)
    port.take()
    yield port
    port.close()


_ATTEMPTS = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
for reuse_address in (0, 1):
    for reuse_port in (0, 1):
        for host in ("127.0.0.1", "0.0.0.0", "::1"):
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse_address)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuse_port)
                try:
                    sock.bind((host, int(sys.argv[1])))
                    sock.listen()
                except OSError:
                    continue
                print(host, reuse_address, reuse_port)
"""


def _had_by_somebody_else(port: int) -> list[str]:
    """In which ways another user's process gets a port."""
    command = [sys.executable, "-c", _ATTEMPTS, str(port), str(SOMEBODY_ELSE)]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_nobody_else_gets_a_port_that_is_kept_whoever_listens(kept: KeptPort, free_port: int) -> None:
    for _ in range(2):
        assert _had_by_somebody_else(free_port) == []
        with listening_socket(HOST, free_port, kept=True) as server, socket.create_connection((HOST, free_port)):
            server.setblocking(True)
            server.accept()[0].close()  # so that connections linger in the second round
            assert _had_by_somebody_else(free_port) == []
    kept.close()
    had = {"127.0.0.1 1 0"} | ({"::1 1 0"} if _has_ipv6() else set())
    assert had <= {*_had_by_somebody_else(free_port)}, "else this test would see nothing"


def _has_ipv6() -> bool:
    try:
        listening_socket("::1", 0).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_port_is_kept_where_somebody_has_it_at_the_other_address_of_localhost(free_port: int) -> None:
    with listening_socket("::1", free_port):
        port = KeptPort(HOST, free_port)
        port.take()
        assert port.is_kept
        port.close()


def test_only_one_keeps_a_port_and_who_does_not_know_finds_it_taken(kept: KeptPort, free_port: int) -> None:
    other = KeptPort(HOST, free_port)
    with pytest.raises(OSError, match="Address already in use"):
        other.take()
    assert not other.is_kept
    with pytest.raises(OSError, match="Address already in use"):
        listening_socket(HOST, free_port)
    kept.close()
    kept.close()
    listening_socket(HOST, free_port).close()


@pytest.mark.parametrize("keeps_it", [False, True])
def test_what_is_listened_at_can_not_be_kept(free_port: int, keeps_it: bool) -> None:
    port = KeptPort(HOST, free_port)
    if keeps_it:
        port.take()
    with listening_socket(HOST, free_port, kept=keeps_it):
        other = KeptPort(HOST, free_port)
        with pytest.raises(OSError, match="Address already in use"):
            other.take()
        assert not other.is_kept
    port.close()


def test_a_host_that_no_look_up_takes_can_not_be_listened_at() -> None:
    with pytest.raises(OSError, match=r"no host has such a name: .*label "):
        listening_socket("a..b", 0)


def test_a_port_is_kept_again_though_connections_of_before_linger(free_port: int) -> None:
    with listening_socket(HOST, free_port) as server:
        server.setblocking(True)
        with socket.create_connection((HOST, free_port)):
            server.accept()[0].close()
    port = KeptPort(HOST, free_port)
    port.take()
    assert port.is_kept
    listening_socket(HOST, free_port, kept=True).close()
    port.close()
