"""Keeps datagrams from elsewhere away from sockets that speak to this machine only, but are bound to all addresses
(Linux).

Zenoh takes the answers to its scouting at such a socket, whatever interface it scouts on, and connects to whomever an
answer names. A classic BPF program on the socket drops in the kernel what was not sent from 127.0.0.0/8.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys

from dimos_streams.bus.guard import open_fds

_SO_ATTACH_FILTER = 26
_SOURCE = 0xFFF00000 + 12  # of the IPv4 header, which is before what a filter on a UDP socket sees
_LD_B_ABS, _JEQ, _RET = 0x30, 0x15, 0x06
_ACCEPT, _DROP = 0xFFFFFFFF, 0
_LOOPBACK = 127
_PROGRAM = b"".join(
    struct.pack("@HBBI", *instruction)
    for instruction in (
        (_LD_B_ABS, 0, 0, _SOURCE),
        (_JEQ, 0, 1, _LOOPBACK),
        (_RET, 0, 0, _ACCEPT),
        (_RET, 0, 0, _DROP),
    )
)


def keep_to_loopback(before: set[int], group: str) -> None:
    """Have the UDP sockets of this process that were not open ``before``, and send to the group ``HOST:PORT`` on the
    loopback interface or hear it, hear this machine only. Raises ``OSError`` where the system has no such filters."""
    if not sys.platform.startswith("linux"):
        raise OSError("packet filters need Linux")
    for fd in open_fds() - before:
        try:
            duplicate = socket.socket(fileno=os.dup(fd))
        except OSError:  # no socket, or closed since it was listed
            continue
        with duplicate:
            if _is_for_loopback(duplicate, group):
                _attach(duplicate)


def _is_for_loopback(receiver: socket.socket, group: str) -> bool:
    if (receiver.family, receiver.type) != (socket.AF_INET, socket.SOCK_DGRAM):
        return False
    host, port = receiver.getsockname()
    sends_on = receiver.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, 4)
    return sends_on[0] == _LOOPBACK or f"{host}:{port}" == group


def _attach(receiver: socket.socket) -> None:
    buffer = ctypes.create_string_buffer(_PROGRAM, len(_PROGRAM))
    program = struct.pack("@HP", len(_PROGRAM) // 8, ctypes.addressof(buffer))
    receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
