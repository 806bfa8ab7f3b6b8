"""TCP ports that are listened at, and kept while nobody listens."""

from __future__ import annotations

import contextlib
import errno
import socket
import sys

from dimos_streams.common.schemas.host_name import host_fault

_BACKLOG = 1024
_OTHER_LOCALHOST = {"127.0.0.1": "::1", "::1": "127.0.0.1"}
"""The address to which ``localhost`` leads besides the one that is served at: browsers ask ``::1`` first."""


def listening_socket(host: str, port: int, *, send_buffer: int = 0, kept: bool = False) -> socket.socket:
    """Return a socket that listens and does not block. Its connections have ``send_buffer`` bytes for what is sent,
    by default as many as the system thinks fit. ``kept`` is true if a ``KeptPort`` of this user's keeps the port.

    Raises ``OSError`` if the port can't be had, also for an unknown host.
    """
    sock = _bound(host, port, shared=kept)
    try:
        if send_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def why_not_listening(host: str, port: int, error: OSError, *, chosen_by: str) -> str:
    """Return why a port can't be listened at, for people; ``chosen_by`` says how they choose another."""
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken on {host!r}; choose another with {chosen_by}"
    return f"can't listen on {host!r}, port {port}: {error.strerror or error}"


class KeptPort:
    """A port that is this user's from ``take`` to ``close``, whether anybody listens at it or not.

    Else whoever serves there could be followed by another user's program, to which clients would send their tokens
    when they connect again. On Linux a bound socket with ``SO_REUSEPORT`` admits others of its user only (socket(7));
    elsewhere nothing is kept. The same port of ``localhost``'s other address is kept with it, where it is free.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self._sockets: list[socket.socket] = []

    @property
    def is_kept(self) -> bool:
        """True while the port is kept."""
        return bool(self._sockets)

    def take(self) -> None:
        """Keep the port. Raises ``OSError`` if it can't be listened at."""
        # What only keeps the port would not notice who listens.
        listening_socket(self.host, self.port).close()
        if not sys.platform.startswith("linux"):
            return
        address = self._keep(self.host)
        if other := _OTHER_LOCALHOST.get(address):
            with contextlib.suppress(OSError):  # somebody else's, or a machine without IPv6
                self._keep(other)

    def _keep(self, host: str) -> str:
        """Keep the port at the first address of a host; return that address."""
        keeper = _bound(host, self.port, shared=True)
        # Left on, it would admit whoever has it on.
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        self._sockets.append(keeper)
        return str(keeper.getsockname()[0])

    def close(self) -> None:
        """Let go of the port. Twice is fine."""
        while self._sockets:
            self._sockets.pop().close()


def _bound(host: str, port: int, *, shared: bool) -> socket.socket:
    """A socket at the first address of a host; ``shared`` admits others of this user that are shared, too. Raises
    ``OSError``."""
    if fault := host_fault(host):
        raise OSError(fault)
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of before may linger
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock
