"""Addresses that are this machine's own only, and the port of a bridge."""

from __future__ import annotations

import ipaddress
from typing import Final

BRIDGE_PORT: Final = 7780
"""The TCP port on which a bridge serves, unless another one is chosen."""


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is this machine's own only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
