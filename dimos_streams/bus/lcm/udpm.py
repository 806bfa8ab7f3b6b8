"""LCM's protocol over UDP multicast with Python's own sockets, for machines on which LCM's library can't be loaded.

The library in LCM's wheels needs GLib from the system, which bare machines and slim containers don't have. The
protocol is described in LCM's "UDP Multicast Protocol Description": a short message is one datagram, a long one
several fragments. Datagrams that are neither are ignored.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.bus.sizes import MAX_CHANNEL_BYTES, MAX_MESSAGE

_SHORT, _FRAGMENT = 0x4C433032, 0x4C433033
_SHORT_HEADER = struct.Struct(">II")
"""Magic number "LC02", message number."""
_FRAGMENT_HEADER = struct.Struct(">IIIIHH")
"""Magic number "LC03", message number and size, offset of this fragment's data, fragment number and count."""
_DATAGRAM = 65507
_FRAGMENT_SPACE = _DATAGRAM - _FRAGMENT_HEADER.size
_LONGEST_MESSAGE = MAX_MESSAGE
_SENDERS = 64
"""Maximum number of senders whose messages are put together at the same time; each has one incomplete message."""
_MAX_HELD = 2 * MAX_MESSAGE
"""Maximum size of all incomplete messages together, in bytes; beyond it, the one that began first is given up."""

Deliver = Callable[[str, bytes], None]


@dataclass(eq=False, slots=True)
class UdpmSubscription:
    """A function that gets the messages of all channels that match a pattern."""

    pattern: re.Pattern[str]
    deliver: Deliver

    def set_queue_capacity(self, capacity: int) -> None:
        """Do nothing: LCM queues messages between socket and handler; here the socket's buffer is the only queue."""


@dataclass(slots=True)
class _Partial:
    """A long message of which fragments are missing."""

    number: int
    size: int
    fragments: int
    channel: str
    data: bytearray = field(default_factory=bytearray)
    came: int = 0
    """Number of fragments that have come, in order."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers by which its fragments are recognized."""
        return self.number, self.size, self.fragments


class UdpmSocket:
    """A replacement for ``lcm.LCM``, with what ``LcmBus`` needs of it. Raises ``OSError`` if the machine can't send
    to the group."""

    def __init__(self, url: UdpmUrl) -> None:
        self._address = (url.group, url.port)
        self._number = 0
        self._subscriptions: list[UdpmSubscription] = []
        self._partials: dict[object, _Partial] = {}
        self._buffer = bytearray(1 << 16)
        self._view = memoryview(self._buffer)
        self._sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._open(url)
        except BaseException:
            self.close()
            raise

    def _open(self, url: UdpmUrl) -> None:
        self._sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, url.ttl)
        self._sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(self._address)
        # Unconnected: a connected socket has a source address, and Linux sends multicast from the interface of that
        # address, whatever the route to the group says.
        receiving = self._receiving
        receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, url.receive_buffer)
        url.bind(receiving)
        group = struct.pack("=4sL", socket.inet_aton(url.group), socket.INADDR_ANY)
        receiving.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        receiving.setblocking(False)

    def close(self) -> None:
        """Close the sockets. Closing twice is fine."""
        self._sending.close()
        self._receiving.close()

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is something to handle."""
        return self._receiving.fileno()

    def subscribe(self, channel: str, handler: Deliver) -> UdpmSubscription:
        """Subscribe a handler; ``channel`` is a regular expression that must match whole names."""
        subscription = UdpmSubscription(re.compile(channel), handler)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: UdpmSubscription) -> None:
        """End a subscription: nothing more is delivered to its handler."""
        self._subscriptions.remove(subscription)

    def publish(self, channel: str, data: bytes) -> None:
        """Send one message. Raises ``OSError`` if it can't be sent or is too large, and for names that LCM does not
        accept."""
        name = channel.encode()
        if len(name) > MAX_CHANNEL_BYTES or b"\0" in name or len(data) > _LONGEST_MESSAGE:
            raise OSError(f"channel names have {MAX_CHANNEL_BYTES} bytes at most, messages {_LONGEST_MESSAGE}")
        number, self._number = self._number, (self._number + 1) & 0xFFFF_FFFF
        body = name + b"\0" + data
        if len(body) <= _DATAGRAM - _SHORT_HEADER.size:
            self._sending.sendto(_SHORT_HEADER.pack(_SHORT, number) + body, self._address)
            return
        count = -(-len(body) // _FRAGMENT_SPACE)
        for index in range(count):
            begin = index * _FRAGMENT_SPACE
            offset = max(0, begin - len(name) - 1)
            header = _FRAGMENT_HEADER.pack(_FRAGMENT, number, len(data), offset, index, count)
            self._sending.sendto(header + body[begin : begin + _FRAGMENT_SPACE], self._address)

    def handle_timeout(self, timeout_ms: int) -> int:
        """Take one datagram and deliver the message that it completes, if any; 0 if none has come. Never wait."""
        try:
            size, sender = self._receiving.recvfrom_into(self._buffer)
        except BlockingIOError:
            return 0
        if size >= _SHORT_HEADER.size:
            magic = int.from_bytes(self._view[:4], "big")
            if magic == _SHORT:
                self._take_short(size)
            elif magic == _FRAGMENT and size >= _FRAGMENT_HEADER.size:
                self._take_fragment(size, sender)
        return 1

    def _take_short(self, size: int) -> None:
        named = self._name(_SHORT_HEADER.size, size)
        if named is not None:
            channel, begin = named
            self._deliver(channel, bytes(self._view[begin:size]))

    def _take_fragment(self, size: int, sender: object) -> None:
        _, number, total, offset, index, count = _FRAGMENT_HEADER.unpack_from(self._buffer)
        begin, shape = _FRAGMENT_HEADER.size, (number, total, count)
        if not index < count or total > min(count * _FRAGMENT_SPACE, _LONGEST_MESSAGE):
            return
        if index == 0:
            named = self._name(begin, size)
            if named is None:
                return
            channel, begin = named
            if self._has_begun_with(sender, shape, channel, self._view[begin:size]):
                return
            self._begin(sender, _Partial(number, total, count, channel))
        partial = self._partials.get(sender)
        if partial is None or partial.shape != shape or index < partial.came:  # of another message, or twice
            return
        # Fragments come in order; after a lost one the rest of the message is of no use.
        if index > partial.came or offset != len(partial.data) or offset + size - begin > total:
            del self._partials[sender]
            return
        self._extend(sender, partial, self._view[begin:size])

    def _begin(self, sender: object, partial: _Partial) -> None:
        self._partials.pop(sender, None)
        while len(self._partials) >= _SENDERS:
            self._partials.pop(next(iter(self._partials)))
        self._partials[sender] = partial

    def _extend(self, sender: object, partial: _Partial, data: memoryview) -> None:
        """Take in the next fragment, and deliver the message if it was the last."""
        partial.data += data
        partial.came += 1
        while sum(len(held.data) for held in self._partials.values()) > _MAX_HELD:
            self._partials.pop(next(iter(self._partials)))
        complete = partial.came == partial.fragments and self._partials.pop(sender, None) is not None
        if complete and len(partial.data) == partial.size:
            self._deliver(partial.channel, bytes(partial.data))

    def _has_begun_with(self, sender: object, shape: tuple[int, int, int], channel: str, data: memoryview) -> bool:
        """Return whether a first fragment is a late repeat of the one with which the sender's unfinished message
        began."""
        partial = self._partials.get(sender)
        if partial is None or partial.shape != shape:
            return False
        return partial.channel == channel and partial.data[: len(data)] == data

    def _name(self, begin: int, size: int) -> tuple[str, int] | None:
        """Return the channel name that begins at an index of the datagram, and the index behind its NUL; None if it
        is invalid."""
        end = self._buffer.find(0, begin, min(size, begin + MAX_CHANNEL_BYTES + 1))
        if end < 0:
            return None
        try:
            return self._buffer[begin:end].decode(), end + 1
        except UnicodeDecodeError:
            return None

    def _deliver(self, channel: str, data: bytes) -> None:
        for subscription in self._subscriptions[:]:
            if subscription.pattern.fullmatch(channel):
                subscription.deliver(channel, data)
