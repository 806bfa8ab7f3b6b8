"""Datagrams that nobody should send: junk, damaged messages, and sound messages with hostile values."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Sequence
from typing import Any

from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Field, Message, fields_of
from dimos_streams.messages.codec import decode, encode, split_channel, type_named
from tests.hostile.texts import HOSTILE_JSON

MAX_DATAGRAM = 60_000

_FLOATS = (float("nan"), float("inf"), float("-inf"), 1.7e308, -1.7e308, 5e-324, 0.0, -1.0)
_BITS = {"int8_t": 8, "int16_t": 16, "int32_t": 32, "int64_t": 64}
_STRINGS = (
    "",
    "\0",
    "a" * 20_000,
    "../../../../etc/passwd",
    "..",
    "line\nERROR forged line\r\n",
    "\u202e\u0007\x1b[2J",
    "robot",
    *HOSTILE_JSON,
)


class DatagramFuzzer:
    """Makes hostile datagrams out of sound messages by channel. The same seed and messages give the same ones."""

    def __init__(self, samples: dict[str, list[bytes]], seed: int) -> None:
        self._samples = samples
        self._channels = sorted(samples)
        self._random = random.Random(seed)
        self._kinds = (
            self._junk,
            self._fragment,
            self._random_payload,
            self._cut,
            self._flipped,
            self._flipped,
            self._of_another_type,
            self._hostile_values,
            self._hostile_values,
            self._hostile_values,
        )

    def datagram(self) -> bytes:
        """The next one."""
        return self._random.choice(self._kinds)()[:MAX_DATAGRAM]

    def _junk(self) -> bytes:
        rng = self._random
        magic = rng.choice((b"LC02", b"LC03", b"LC0", rng.randbytes(4)))
        return (magic + rng.randbytes(rng.randrange(80)))[: rng.choice((3, 7, 8, 9, 21, 90))]

    def _fragment(self) -> bytes:
        rng = self._random
        size, offset = rng.choice((0, 100, 2**20, 2**28, 2**32 - 1)), rng.choice((0, 50, 2**28, 2**32 - 1))
        number, count = rng.choice((0, 0, 1, 7, 65535)), rng.choice((0, 1, 2, 65535))
        header = b"LC03" + struct.pack(">IIIHH", rng.randrange(9), size, offset, number, count)
        return header + rng.choice(self._channels).encode() + b"\0" + rng.randbytes(rng.randrange(200))

    def _random_payload(self) -> bytes:
        return self._short(self._channel(), self._random.randbytes(self._random.choice((0, 7, 8, 100, 3000))))

    def _cut(self) -> bytes:
        channel, data = self._sample()
        cut = data[: self._random.randrange(len(data) + 1)]
        return self._short(channel, self._random.choice((cut, data + self._random.randbytes(9))))

    def _flipped(self) -> bytes:
        channel, data = self._sample()
        damaged = bytearray(data)
        for _ in range(self._random.choice((1, 1, 2, 8))):
            # Most of it behind the fingerprint, where it is not noticed at once.
            first = self._random.choice((0, 8, 8, 8)) if len(damaged) > 8 else 0
            damaged[self._random.randrange(first, len(damaged))] = self._random.randrange(256)
        return self._short(channel, bytes(damaged))

    def _of_another_type(self) -> bytes:
        return self._short(self._channel(), self._sample()[1])

    def _hostile_values(self) -> bytes:
        channel, data = self._sample()
        message = decode(type_named(split_channel(channel)[1]), data)
        for _ in range(self._random.choice((1, 1, 2, 5))):
            self._spoil(message)
        try:
            return self._short(channel, encode(message))
        except MessageError:
            return self._flipped()

    def _spoil(self, message: Message) -> None:
        """Set some field of a message, or of one inside it, to a hostile value."""
        field = self._random.choice(fields_of(type(message)))
        value = getattr(message, field.name)
        if field.is_message:
            inner = value if field.size is None else self._random.choice(value) if value else None
            if inner is not None:
                self._spoil(inner)
        elif field.size is None:
            setattr(message, field.name, self._value(field))
        elif isinstance(field.size, int):
            setattr(message, field.name, [self._value(field) for _ in range(field.size)])
        else:
            self._spoil_array(message, field)

    def _spoil_array(self, message: Message, field: Field) -> None:
        count = self._random.choice((0, 1, 3, 1000))
        if field.type == "byte":
            setattr(message, field.name, self._random.randbytes(count))
        else:
            setattr(message, field.name, [self._value(field) for _ in range(count)])

    def _value(self, field: Field) -> Any:
        rng = self._random
        if field.type in ("double", "float"):
            return rng.choice(_FLOATS)
        if field.type == "string":
            return rng.choice(HOSTILE_JSON if field.name.endswith("json") else _STRINGS)
        if field.type == "boolean":
            return rng.randrange(2)
        bits = _BITS.get(field.type, 7)
        return rng.choice((0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), rng.randrange(2 ** (bits - 1))))

    def _channel(self) -> str:
        return self._random.choice(self._channels)

    def _sample(self) -> tuple[str, bytes]:
        channel = self._channel()
        return channel, self._random.choice(self._samples[channel])

    def _short(self, channel: str, data: bytes) -> bytes:
        return b"LC02" + struct.pack(">I", self._random.randrange(2**32)) + channel.encode() + b"\0" + data


class Sender:
    """Sends raw datagrams to a bus."""

    def __init__(self, bus_url: str) -> None:
        url = UdpmUrl.parse(bus_url)
        self._where = url.group, url.port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)

    def send(self, datagrams: Sequence[bytes]) -> None:
        for datagram in datagrams:
            self._socket.sendto(datagram, self._where)

    def close(self) -> None:
        self._socket.close()
