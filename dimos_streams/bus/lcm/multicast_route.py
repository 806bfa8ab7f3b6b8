"""The network interface that multicast takes (Linux), and the commands that make it take the one that a bus needs.

Multicast that is to reach other machines (``ttl`` of 1 and more) needs a route on the link to them. A route on ``lo``
accepts it as well, without an error, but then nothing leaves the machine.
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

from dimos_streams.common.process.loopback import interfaces

LOOPBACK = "lo"
_ROUTES = Path("/proc/thread-self/net/route")
_GET_FLAGS = 0x8913
_REQUEST = struct.Struct("@16sH14x")
_UP, _MULTICAST = 0x1, 0x1000


def route_interface(group: str) -> str | None:
    """Return the interface on which this machine sends to a group, by its table of routes, or None if that can't be
    told."""
    try:
        lines = _ROUTES.read_text(encoding="utf-8").splitlines()[1:]
    except OSError:
        return None
    address = _little_endian(group)
    found: list[tuple[int, int, str]] = []
    for line in lines:
        name, destination, _, flags, _, _, metric, mask, *_ = line.split()
        if int(flags, 16) & _UP and address & int(mask, 16) == int(destination, 16):
            found.append((-int(mask, 16).bit_count(), int(metric), name))
    return min(found)[2] if found else None


def link_interfaces() -> list[str]:
    """Return the interfaces by which others may be reached: those that are up and do multicast, the default route's
    first."""
    usable = [name for name in interfaces().values() if name != LOOPBACK and _does_multicast(name)]
    default = route_interface("0.0.0.0")
    return sorted(usable, key=lambda name: (name != default, name))


def route_commands(ttl: int, *, replaces: bool = False) -> tuple[str, ...]:
    """Return the commands that give multicast with that ``ttl`` a route, as root; ``replaces`` replaces another
    route. An interface that is down is set up first: it takes no route.

    Without an interface that leads to others they name a placeholder: somebody has to plug one in, or set it up.
    """
    name = (link_interfaces() or ["INTERFACE"])[0] if ttl > 0 else LOOPBACK
    route = f"ip route {'replace' if replaces else 'add'} 224.0.0.0/4 dev {name}"
    up = (f"ip link set {name} up",) if name == LOOPBACK and not _flags(name) & _UP else ()
    return (*up, route, f"ip link set {name} multicast on")


def _does_multicast(name: str) -> bool:
    return _flags(name) & (_UP | _MULTICAST) == _UP | _MULTICAST


def _flags(name: str) -> int:
    """Return the flags of an interface; 0 if there is none of that name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket, _GET_FLAGS, _REQUEST.pack(name.encode(), 0))
        except OSError:  # it has gone meanwhile
            return 0
    flags: int = _REQUEST.unpack(answer)[1]
    return flags


def _little_endian(address: str) -> int:
    """Return the address as the table of routes has it."""
    number: int = struct.unpack("=I", ipaddress.IPv4Address(address).packed)[0]
    return number
