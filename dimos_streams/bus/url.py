"""Bus URLs: the one that counts, its transport, and whether messages leave the process or the machine."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias, assert_never, get_args

from dimos_streams.bus.lcm.url import DEFAULT_URL, UdpmUrl
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.common.secrets import unreadable_url
from dimos_streams.errors import BusError, BusUrlError

Transport: TypeAlias = Literal["memq", "udpm", "zenoh"]
"""What the URL of a bus begins with. Type checkers name each place that has to know of another one."""
VARIABLES = ("DIMOS_STREAMS_BUS", "LCM_DEFAULT_URL")
"""Environment variables for the bus URL; the first that is set counts."""


def bus_url(given: str | None = None) -> str:
    """Return the URL that was given, else ``DIMOS_STREAMS_BUS``, else ``LCM_DEFAULT_URL``, else multicast that stays
    on this machine."""
    if given is not None:
        return given
    return next(filter(None, map(os.environ.get, VARIABLES)), DEFAULT_URL)


def transport_of(url: str) -> Transport:
    """Return the transport of a URL. Raises ``BusUrlError`` for one that has none."""
    transport: Transport
    for transport in get_args(Transport):
        if url.startswith(f"{transport}://"):
            return transport
    examples = f"'memq://' or for example {DEFAULT_URL!r} or 'zenoh://'"
    raise BusUrlError(f"bad bus URL {unreadable_url(url)!r}; valid: {examples}")


def leaves_process(url: str) -> bool:
    """Return whether other processes hear what is sent on a bus. Raises ``BusUrlError`` for an invalid URL."""
    match transport_of(url):
        case "memq":
            return False
        case "udpm":
            UdpmUrl.parse(url)
        case "zenoh":
            ZenohUrl.parse(url)
        case unknown:
            assert_never(unknown)
    return True


def why_local(url: str) -> str:
    """Return why no other machine hears what is sent on a bus; empty if others may. Raises ``BusUrlError`` for an
    invalid URL."""
    here_only = "it is on this machine only: give `interface` and `listen`"
    match transport_of(url):
        case "memq":
            return here_only
        case "udpm":
            parsed = UdpmUrl.parse(url)
            return parsed.stays_here() or ("" if parsed.ttl > 0 else "with ttl=0 nothing leaves this machine")
        case "zenoh":
            return here_only if ZenohUrl.parse(url).is_local else ""
        case unknown:
            assert_never(unknown)


def check_route(url: str) -> None:
    """Raise ``BusError``, with what mends it, if this machine can't send to the bus."""
    if transport_of(url) == "udpm":
        parsed = UdpmUrl.parse(url)
        if parsed.route_problem() is not None:
            raise BusError(parsed.explain_failure())
