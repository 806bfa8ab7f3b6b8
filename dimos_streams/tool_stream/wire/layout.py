"""The layout of an event's bytes, and what is read of them alone: its call, and the instance that writes its stream.

The bytes are those of ``messages.dimos_streams.ToolStreamEvent`` in LCM's encoding: big-endian fields in the order of
``lcm_types/dimos_streams/ToolStreamEvent.lcm``, a string as its length with the NUL, its UTF-8 and the NUL. A test
compares both.
"""

from __future__ import annotations

import functools
import struct

from dimos_streams.common.json.writing import json_text
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.tool_stream.protocol.bounds import MAX_EVENT

TYPE = ToolStreamEvent.msg_name
FINGERPRINT = ToolStreamEvent._get_packed_fingerprint()
INSTANCE = "_instance"
"""The key, behind those of an event's own data, of the instance that writes its stream."""
UTIME, SEQ, LENGTH = struct.Struct(">q"), struct.Struct(">i"), struct.Struct(">I")
ID_AT = len(FINGERPRINT) + UTIME.size
"""The index at which the call's id begins."""


def call_id_of(data: bytes) -> str:
    """Return the call id in an event's bytes, without reading the rest; empty if it can't be read."""
    if not data.startswith(FINGERPRINT) or len(data) > MAX_EVENT:
        return ""
    try:
        end = ID_AT + LENGTH.size + LENGTH.unpack_from(data, ID_AT)[0] - 1
        return data[ID_AT + LENGTH.size : end].decode() if end < len(data) else ""
    except (struct.error, UnicodeDecodeError):
        return ""


def may_be_of(data: bytes, instance: str) -> bool:
    """Return whether an event's bytes may be of an instance, which a publisher writes at their end; it is only
    certain when all of them are read. True for an empty instance, which is nobody in particular."""
    return not instance or data.endswith(instance_ending(instance))


@functools.lru_cache(maxsize=1024)
def instance_ending(instance: str) -> bytes:
    """Return the end of the bytes of an instance's events: what is behind its key, before which others' encoders put
    blanks."""
    return f"{json_text(instance)}}}\0".encode()
