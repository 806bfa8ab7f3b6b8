"""The membership of a bus in its multicast group, which the system ends with the network interface that it is of."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Sequence

from dimos_streams.bus import packet_filter
from dimos_streams.common.process.loopback import interfaces

_RENEW_S = 0.5
"""Time between two looks, in seconds: with a heartbeat less than the silence after which a module counts as gone."""
_REQUEST = struct.Struct("=4s4si")
"""The group, no address, and the number of an interface; 0 for the one to which the group's datagrams go."""

_logger = logging.getLogger(__name__)


class Membership:
    """Keeps sockets in a group, by whichever interface its datagrams go. One that is plugged in again is another one,
    and nobody says that the old membership has gone with it."""

    def __init__(self, group: str, sockets: Sequence[int], loop: asyncio.AbstractEventLoop) -> None:
        self._group = group
        self._sockets = sockets
        self._loop = loop
        self._interfaces = set(interfaces())
        """The numbers of the interfaces that there were when it was a member last."""
        self._next = loop.call_later(_RENEW_S, self._renew)

    def close(self) -> None:
        """Leave the sockets as they are: they are about to be closed."""
        self._next.cancel()

    def _renew(self) -> None:
        self._next = self._loop.call_later(_RENEW_S, self._renew)
        joined = [fd for fd in self._sockets if self._change(fd, socket.IP_ADD_MEMBERSHIP)]
        if not joined:  # they are members, or nothing leads to the group
            return
        _logger.warning("multicast to %s takes another network interface: its group is joined there", self._group)
        before, self._interfaces = self._interfaces, set(interfaces())
        vanished = before - self._interfaces if self._interfaces else ()
        for interface in vanished:  # a socket may have 20 memberships, and those count
            for fd in joined:
                self._change(fd, socket.IP_DROP_MEMBERSHIP, interface)

    def _change(self, fd: int, option: int, interface: int = 0) -> bool:
        """Change a socket's memberships; return whether there was anything to change, and it could be."""
        request = _REQUEST.pack(socket.inet_aton(self._group), bytes(4), interface)
        try:
            with packet_filter.duplicate(fd) as receiver:
                receiver.setsockopt(socket.IPPROTO_IP, option, request)
        except OSError:
            return False
        return True
