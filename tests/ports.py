"""TCP ports for servers of tests, and UDP ports for their buses."""

from __future__ import annotations

import errno
import itertools
import os
import random
import socket
import sys
import uuid

_FIRST, _BEYOND = 10_000, 32_768
"""The ports that are given here end where Linux begins with those that it chooses itself: for servers on port 0 and
for every connection, of all workers at once. A port of those may be gone again before it is used."""
PROCESSES = 64
"""One port of so many in a row is a process's own."""
_DDS_FIRST, _DDS_STEP, _DDS_TAKEN = 7_400, 250, 100
"""Where the UDP ports of DDS begin, how far those of its domains are apart, and how many of these robots may take."""

_steps = itertools.count(random.SystemRandom().randrange(_BEYOND))
_claims: dict[int, tuple[int, int]] = {}
"""What each process has for its own, itself and those that it was forked from, and the descriptor of the socket that
shows others that it has."""


def free_port() -> int:
    """A TCP port of loopback that is free, and that nobody else of this machine is about to take."""
    return _free(socket.SOCK_STREAM, "127.0.0.1")


def free_udp_port() -> int:
    """The same of UDP, for multicast."""
    return _free(socket.SOCK_DGRAM, "")


def free_bus() -> str:
    """A bus of LCM on this machine that nobody else is on: runs of two sessions must not hear each other."""
    first, second, third = uuid.uuid4().bytes[:3]
    return f"udpm://239.{first}.{second}.{third}:{free_udp_port()}?ttl=0"


def is_of_dds(port: int) -> bool:
    """Whether a robot on DDS takes a UDP port, if it is in the domain to which that belongs."""
    return (port - _DDS_FIRST) % _DDS_STEP < _DDS_TAKEN


def _free(kind: socket.SocketKind, host: str) -> int:
    own = _own() if sys.platform == "linux" else os.getpid() % PROCESSES
    of_process = (_BEYOND - _FIRST) // PROCESSES
    for step in itertools.islice(_steps, of_process):
        port = _FIRST + step % of_process * PROCESSES + own
        if kind == socket.SOCK_DGRAM and is_of_dds(port):
            continue
        with socket.socket(type=kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise AssertionError(f"none of {of_process} ports is free")


def _own() -> int:
    """Which ports are this process's until it ends. Its name as a worker would not do: sessions that run at the same
    time give their workers the same names."""
    process = os.getpid()
    if process not in _claims:
        _claims[process] = _claim()
    return _claims[process][0]


def _claim() -> tuple[int, int]:
    for number in range(PROCESSES):
        shown = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            shown.bind(f"\0dimos_streams tests: ports {number}")
        except OSError as error:
            shown.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return number, shown.detach()  # the end of the process closes it
    raise AssertionError(f"{PROCESSES} processes have all ports of tests")
