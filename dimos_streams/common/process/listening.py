"""TCP ports that are listened at, and kept while nobody listens."""

from __future__ import annotations

import errno
import socket
import sys
from typing import Any

from dimos_streams.errors import UserError

_BACKLOG = 1024


def listening_socket(host: str, port: int, *, send_buffer: int = 0, kept: bool = False) -> socket.socket:
    """Return a socket that listens and does not block. Its connections have ``send_buffer`` bytes for what is sent,
    by default as many as the system thinks fit. ``kept`` is true if a ``KeptPort`` of this user's keeps the port.

    Raises ``UserError`` if the port can't be had.
    """
    sock = _socket(host, port)
    try:
        if kept:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if send_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        _bind(sock, host, port)
        sock.listen(_BACKLOG)
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError):
            raise _refusal(host, port, error) from error
        raise
    sock.setblocking(False)
    return sock


class KeptPort:
    """A port that is this user's from ``take`` to ``close``, whether anybody listens at it or not.

    Else whoever serves there could be followed by another user's program, to which clients would send their tokens
    when they connect again. On Linux a bound socket with ``SO_REUSEPORT`` admits others of its user only (socket(7));
    elsewhere nothing is kept.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._socket: socket.socket | None = None

    @property
    def is_kept(self) -> bool:
        """True while the port is kept."""
        return self._socket is not None

    def take(self) -> None:
        """Keep the port. Raises ``UserError`` if somebody has it, or keeps it."""
        if not sys.platform.startswith("linux"):
            return
        listening_socket(self._host, self._port).close()  # what only keeps the port would not notice who listens
        sock = _socket(self._host, self._port)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            _bind(sock, self._host, self._port)
            # Needed where connections of before linger; left on, it would admit whoever has it on.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        except OSError as error:
            sock.close()
            raise _refusal(self._host, self._port, error) from error
        self._socket = sock

    def close(self) -> None:
        """Let go of the port. Twice is fine."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _socket(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, _ = _resolve(host, port)
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UserError(f"can't listen on {host!r}: {error}") from error
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock


def _bind(sock: socket.socket, host: str, port: int) -> None:
    sock.bind(_resolve(host, port)[4])


def _resolve(host: str, port: int) -> tuple[Any, ...]:
    """The first address of a host. Raises ``OSError`` for an unknown one."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]


def _refusal(host: str, port: int, error: OSError) -> UserError:
    if error.errno == errno.EADDRINUSE:
        return UserError(f"port {port} is taken on {host!r}; choose another with --port")
    return UserError(f"can't listen on {host!r}, port {port}: {error.strerror}")
