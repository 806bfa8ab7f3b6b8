"""This machine's own addresses and network interfaces, the port of a bridge, and how this machine reaches what it
serves itself."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

BRIDGE_PORT: Final = 7780
"""The TCP port on which a bridge serves, unless another one is chosen."""
BRIDGE_HOST: Final = "127.0.0.1"
"""The address on which a bridge serves, unless another one is chosen."""
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is this machine's own only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def interfaces() -> dict[int, str]:
    """Return the names of the network interfaces by their numbers; none where the system does not say them, as in a
    service without netlink."""
    try:
        return dict(socket.if_nameindex())
    except OSError:
        return {}


def authority_here(host: str, port: int) -> str:
    """Return the host and port of URLs by which this machine reaches what it serves on an address."""
    reached = _WILDCARDS.get(host, host)
    return f"[{reached}]:{port}" if ":" in reached else f"{reached}:{port}"
