"""TCP ports for servers of tests, and UDP ports for their buses."""

from __future__ import annotations

import itertools
import os
import random
import socket

_FIRST, _BEYOND = 10_000, 32_768
"""The ports that are given here end where Linux begins with those that it chooses itself: for servers on port 0 and
for every connection, of all workers at once. A port of those may be gone again before it is used."""
_WORKERS = 32

_steps = itertools.count(random.SystemRandom().randrange(_BEYOND))


def free_port() -> int:
    """A TCP port of loopback that is free, and that nobody else of this machine is about to take."""
    return _free(socket.SOCK_STREAM, "127.0.0.1")


def free_udp_port() -> int:
    """The same of UDP, for multicast."""
    return _free(socket.SOCK_DGRAM, "")


def _free(kind: socket.SocketKind, host: str) -> int:
    own = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    of_worker = (_BEYOND - _FIRST) // _WORKERS
    for step in itertools.islice(_steps, of_worker):
        port = _FIRST + step % of_worker * _WORKERS + own
        with socket.socket(type=kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise AssertionError(f"none of {of_worker} ports is free")
