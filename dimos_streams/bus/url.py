"""Bus URLs: which transport, where, and how far packets travel."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from dimos_streams.bus.multicast_route import LOOPBACK, route_commands, route_interface
from dimos_streams.bus.zenoh_url import ZenohUrl
from dimos_streams.common.secrets import unreadable_url
from dimos_streams.errors import BusError, BusUrlError

DEFAULT_URL = "udpm://239.255.76.67:7667?ttl=0"
TRANSPORTS = ("memq", "udpm", "zenoh")
VARIABLES = ("DIMOS_STREAMS_BUS", "LCM_DEFAULT_URL")
"""Of the environment, the first that is set counts."""
_RECEIVE_BUFFER = 4 * 1024 * 1024


def bus_url(given: str | None = None) -> str:
    """The URL that was given, else ``DIMOS_STREAMS_BUS``, else ``LCM_DEFAULT_URL``, else multicast that stays on this
    machine."""
    return given or next(filter(None, map(os.environ.get, VARIABLES)), DEFAULT_URL)


@dataclass(frozen=True, slots=True)
class UdpmUrl:
    """``udpm://GROUP:PORT?ttl=N``, LCM's address of a multicast group."""

    group: str
    port: int
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> UdpmUrl:
        """Raises ``UserError`` with the part that does not fit."""
        try:
            if "@" in text:
                raise ValueError("a multicast group has no users")
            parts = urlsplit(text)
            group, port = parts.hostname or "239.255.76.67", parts.port or 7667
            if not ipaddress.IPv4Address(group).is_multicast:
                raise ValueError(f"{group} is no multicast address (224.0.0.0 to 239.255.255.255)")
        except ValueError as error:
            shown = unreadable_url(text, ("ttl", "recv_buf_size"))
            raise BusUrlError(f"bad bus URL {shown!r}: {error}; valid: {DEFAULT_URL!r}") from error
        return cls(group, port, {"ttl": "0"} | dict(parse_qsl(parts.query)))

    def __str__(self) -> str:
        return f"udpm://{self.group}:{self.port}?{urlencode(self.options)}"

    def for_lcm(self) -> str:
        """The URL with a receive buffer as big as the kernel gives."""
        options = {"recv_buf_size": str(_RECEIVE_BUFFER)} | self.options
        return f"udpm://{self.group}:{self.port}?{urlencode(options)}"

    def route_problem(self) -> str | None:
        """The reason for which the machine can't send to the group, or None."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((self.group, self.port))
            except OSError as error:
                return error.strerror or str(error)
        return None

    @property
    def ttl(self) -> int:
        """How many networks messages cross: with 0 they stay on this machine. What is no number counts as 0."""
        text = self.options.get("ttl", "0")
        return int(text) if text.isdecimal() else 0

    def stays_here(self) -> str:
        """Why nothing that is sent leaves this machine although the URL says that it does; empty if it may."""
        if self.ttl > 0 and route_interface(self.group) == LOOPBACK:
            return (
                f"the route to {self.group} is on 'lo', so nothing leaves this machine, whatever ttl={self.ttl} says"
            )
        return ""

    def explain_failure(self) -> str:
        """One line for a person: what is wrong with this machine, and what mends it."""
        problem = self.route_problem()
        if problem is not None:
            return (
                f"no route for multicast to {self.group} ({problem}): `{route_commands(self.ttl)[0]}` as root "
                "mends it until the next boot; `dimos-streams doctor` says more"
            )
        return f"LCM cannot use {str(self)!r}; `dimos-streams doctor` looks for the reason"


def transport_of(url: str) -> str:
    """One of ``TRANSPORTS``. Raises ``BusUrlError`` for any other."""
    scheme = url.partition("://")[0]
    if scheme not in TRANSPORTS or "://" not in url:
        examples = f"'memq://' or for example {DEFAULT_URL!r} or 'zenoh://'"
        raise BusUrlError(f"bad bus URL {unreadable_url(url)!r}; valid: {examples}")
    return scheme


def leaves_process(url: str) -> bool:
    """Whether other processes hear what is sent on a bus. Raises ``BusUrlError`` for what is none."""
    transport = transport_of(url)
    if transport == "udpm":
        UdpmUrl.parse(url)
    elif transport == "zenoh":
        ZenohUrl.parse(url)
    return transport != "memq"


def why_local(url: str) -> str:
    """Why no other machine hears what is sent on a bus; empty if others may. Raises ``BusUrlError``."""
    if transport_of(url) == "udpm":
        parsed = UdpmUrl.parse(url)
        return parsed.stays_here() or ("" if parsed.ttl > 0 else "with ttl=0 nothing leaves this machine")
    local = transport_of(url) == "memq" or ZenohUrl.parse(url).is_local
    return "it is on this machine only: give `interface` and `listen`" if local else ""


def check_route(url: str) -> None:
    """Raises ``BusError`` if this machine can't send to the bus, with what mends it."""
    if transport_of(url) == "udpm":
        parsed = UdpmUrl.parse(url)
        if parsed.route_problem() is not None:
            raise BusError(parsed.explain_failure())
