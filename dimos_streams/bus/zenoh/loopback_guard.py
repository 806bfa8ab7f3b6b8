"""A packet filter that keeps datagrams from elsewhere away from sockets that speak to this machine only, but are
bound to all addresses (Linux).

Zenoh takes the answers to its scouting at such a socket, whatever interface it scouts on, and connects to whomever an
answer names. The packet filter drops what was not sent from 127.0.0.0/8.
"""

from __future__ import annotations

import socket
import sys

from dimos_streams.bus import packet_filter as bpf

_SOURCE = 0xFFF00000 + 12  # of the IPv4 header, which is before what a filter on a UDP socket sees
_LOOPBACK = 127
_PROGRAM = bpf.packed(
    (
        (bpf.LD_B_ABS, 0, 0, _SOURCE),
        (bpf.JEQ, 0, 1, _LOOPBACK),
        (bpf.RET, 0, 0, bpf.ACCEPT),
        (bpf.RET, 0, 0, bpf.DROP),
    )
)


def keep_to_loopback(before: set[int], group: str) -> None:
    """Have the UDP sockets of this process that were not open ``before``, and send to the group ``HOST:PORT`` on the
    loopback interface or hear it, hear this machine only. Raises ``OSError`` where the system has no such filters."""
    if not sys.platform.startswith("linux"):
        raise OSError("packet filters need Linux")
    for _, receiver in bpf.udp_sockets(before):
        if _is_for_loopback(receiver, group):
            bpf.attach(receiver, _PROGRAM)


def _is_for_loopback(receiver: socket.socket, group: str) -> bool:
    host, port = receiver.getsockname()
    sends_on = receiver.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, 4)
    return sends_on[0] == _LOOPBACK or f"{host}:{port}" == group
