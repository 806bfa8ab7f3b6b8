"""The addressee of a message, read without the rest: most of what is on a bus is for others, a flood for nobody.

The messages about calls begin with a fingerprint, a time and some texts (``lcm_types/dimos_streams``), in LCM's
encoding: a text is its length with the NUL, its UTF-8 and the NUL.
"""

from __future__ import annotations

import functools
import struct

from dimos_streams.messages.base import Message

_LENGTH = struct.Struct(">I")
_BEGIN = 8 + 8


@functools.lru_cache(maxsize=8)  # each message is looked at by all that listen in a process
def first_texts(cls: type[Message], data: bytes, count: int) -> tuple[str, ...] | None:
    """Return the first texts of a message; None if it is damaged there, or of another type: ``decode`` says what it
    is."""
    if not data.startswith(cls._get_packed_fingerprint()):
        return None
    texts: list[str] = []
    at = _BEGIN
    try:
        for _ in range(count):
            begin = at + _LENGTH.size
            at = begin + _LENGTH.unpack_from(data, at)[0]
            texts.append(data[begin : at - 1].decode())
    except (struct.error, UnicodeDecodeError):
        return None
    return tuple(texts) if at <= len(data) else None
