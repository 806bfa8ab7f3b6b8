"""URLs ``udpm://GROUP:PORT?ttl=N``: a multicast group, and the number of networks that packets may cross."""

from __future__ import annotations

import ipaddress
import socket
import sys
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from dimos_streams.bus.lcm.multicast_route import LOOPBACK, route_commands, route_interface
from dimos_streams.common.secrets import unreadable_url
from dimos_streams.errors import BusUrlError, suggest

DEFAULT_URL = "udpm://239.255.76.67:7667?ttl=0"
RECEIVE_BUFFER = 4 * 1024 * 1024


_OPTIONS = {"ttl": 255, "recv_buf_size": 2**31 - 1}
"""The options of LCM that a URL may have, and the largest value of each."""


@dataclass(frozen=True, slots=True)
class UdpmUrl:
    """``udpm://GROUP:PORT?ttl=N``, LCM's address of a multicast group."""

    group: str
    port: int
    options: dict[str, str] = field(default_factory=lambda: {"ttl": "0"})

    @classmethod
    def parse(cls, text: str) -> UdpmUrl:
        """Parse a URL. Raises ``BusUrlError`` with the part that does not fit."""
        try:
            if "@" in text:
                raise ValueError("a multicast group has no users")
            parts = urlsplit(text)
            group, port = parts.hostname or "239.255.76.67", 7667 if parts.port is None else parts.port
            if port == 0:
                raise ValueError("0 is no port to which messages can be sent (1 to 65535)")
            if not ipaddress.IPv4Address(group).is_multicast:
                raise ValueError(f"{group} is no multicast address (224.0.0.0 to 239.255.255.255)")
            options = dict(parse_qsl(parts.query, keep_blank_values=True))
            for name, value in options.items():
                _check_option(name, value)
        except ValueError as error:
            shown = unreadable_url(text, tuple(_OPTIONS))
            raise BusUrlError(f"bad bus URL {shown!r}: {error}; valid: {DEFAULT_URL!r}") from error
        return cls(group, port, {"ttl": "0"} | options)

    def __str__(self) -> str:
        return f"udpm://{self.group}:{self.port}?{urlencode(self.options)}"

    def for_lcm(self) -> str:
        """Return the URL with a receive buffer of 4 MB, or as much of it as the kernel gives, unless it names
        another."""
        options = self.options | {"recv_buf_size": str(self.receive_buffer)}
        return f"udpm://{self.group}:{self.port}?{urlencode(options)}"

    def route_problem(self) -> str | None:
        """Return the reason why the machine can't send to the group, or None if it can."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((self.group, self.port))
            except OSError as error:
                return error.strerror or str(error)
        return None

    def bind(self, receiver: socket.socket) -> None:
        """Bind a UDP socket to what is sent to the group, with all others who hear it. Raises ``OSError`` where a
        program has the port for itself."""
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # To the group, as LCM does: what was sent to an address of this machine is no multicast. Not all systems can.
        receiver.bind((self.group if sys.platform == "linux" else "", self.port))

    def port_problem(self) -> str | None:
        """Return the reason why the machine can't hear what is sent to the group's port, or None if it can."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                self.bind(probe)
            except OSError as error:
                return error.strerror or str(error)
        return None

    @property
    def ttl(self) -> int:
        """The number of networks that messages may cross: with 0 they stay on this machine."""
        return int(self.options["ttl"])

    @property
    def receive_buffer(self) -> int:
        """The size, in bytes, of the kernel's buffer that is asked for."""
        return int(self.options.get("recv_buf_size", RECEIVE_BUFFER))

    def stays_here(self) -> str:
        """Return why nothing that is sent leaves this machine although the URL says that it does; empty if messages
        may leave."""
        if self.ttl > 0 and route_interface(self.group) == LOOPBACK:
            return (
                f"the route to {self.group} is on 'lo', so nothing leaves this machine, whatever ttl={self.ttl} says"
            )
        return ""

    def explain_failure(self) -> str:
        """Return one line for people: what is wrong with this machine, and what mends it."""
        problem = self.route_problem()
        if problem is not None:
            remedy = " && ".join(route_commands(self.ttl)[:-1])
            return (
                f"no route for multicast to {self.group} ({problem}): `{remedy}` as root "
                "mends it until the next boot; `dimos-streams doctor` says more"
            )
        problem = self.port_problem()
        if problem is not None:
            another = UdpmUrl(self.group, self.port % 65535 + 1, self.options)
            return (
                f"nothing that is sent to UDP port {self.port} can be heard ({problem}): another program has it for "
                f"itself, and `ss -ulpn sport = :{self.port}` as root names it; {str(another)!r} is at another port"
            )
        return f"LCM cannot use {str(self)!r}; `dimos-streams doctor` looks for the reason"


def _check_option(name: str, value: str) -> None:
    """Raise ``ValueError`` for an option that LCM has not, which it would pass over, and for an invalid value."""
    most = _OPTIONS.get(name)
    if most is None:
        raise ValueError(f"there is no option {name!r}{suggest(name, _OPTIONS)} (options: {', '.join(_OPTIONS)})")
    if not (value.isascii() and value.isdecimal()) or int(value) > most:
        raise ValueError(f"{name} is a whole number up to {most}, not {value!r}")
