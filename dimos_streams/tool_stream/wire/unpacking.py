"""Events from bytes of the bus."""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Sequence
from typing import NamedTuple

from dimos_streams.common.names import MAX_NAME, fault_of_names
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.tool_stream.event import EVENT_TYPES, OUTCOMES, ToolEvent, last_seq_of
from dimos_streams.tool_stream.protocol.bounds import MAX_EVENT
from dimos_streams.tool_stream.protocol.call_ids import is_call_id
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.protocol.json_fields import json_object
from dimos_streams.tool_stream.wire.layout import FINGERPRINT, ID_AT, INSTANCE, LENGTH, SEQ, TYPE, UTIME

_UTIME_LENGTH = struct.Struct(">qI")
_ALIKE_BYTES = 256
"""Maximum size of an event's names, in bytes, that are remembered; longer ones are read with each event, because many
calls may have made up theirs."""

_Fields = tuple[int, str, int, str, str, str, str, str, str]
_FIELDS = ("utime", "call_id", "seq", "type", "module", "skill", "caller", "text", "data_json")


class _CallNames(NamedTuple):
    """The fields that most events of a call have in common."""

    type: str
    module: str
    skill: str
    caller: str


_UNKNOWN = b"", _CallNames("", "", "", "")


def unpack_event(data: bytes, channel: str = EVENTS) -> ToolEvent:
    """Return the event of a message's bytes. Raises ``MessageError`` for what no publisher sends."""
    if len(data) > MAX_EVENT:
        raise MessageError(channel, TYPE, f"it has {len(data)} bytes; {MAX_EVENT} are possible")
    return _event(_unpack(data) or _decode(data, channel), channel)


@functools.lru_cache(maxsize=64)
def _head_of(id_bytes: int) -> struct.Struct:
    """Return the format of time and seq with a call's id in between; thousands of calls have ids of a few lengths."""
    return struct.Struct(f">q{id_bytes}xi")


class EventUnpacker:
    """An unpacker of one call's events: what they have in common with earlier ones is compared, not read again."""

    __slots__ = ("_alike", "_call_id", "_head", "_id", "_names_at")

    def __init__(self) -> None:
        self._call_id, self._id, self._names_at = "", b"", 0
        self._head = UTIME
        """The format of time and seq, with the call's id in between."""
        self._alike: dict[int, tuple[bytes, _CallNames]] = {}
        """Names and their bytes, by the last byte of the length of the type: no two types have that in common."""

    def unpack(self, data: bytes, channel: str = EVENTS) -> ToolEvent:
        """Return what ``unpack_event`` does, whatever call the event is of."""
        fields = self._fields(data)
        return unpack_event(data, channel) if fields is None else _event(fields, channel)

    def _fields(self, data: bytes) -> _Fields | None:
        try:
            if not self._id or not data.startswith(self._id, ID_AT):
                self._learn_id(data)
            at = self._names_at
            block, names = self._alike.get(data[at + LENGTH.size - 1], _UNKNOWN)
            if not block or not data.startswith(block, at):
                block, names = self._learn_names(data)
            at += len(block)
            begin = at + LENGTH.size
            at = begin + LENGTH.unpack_from(data, at)[0]
            text = data[begin : at - 1].decode()
            begin = at + LENGTH.size
            at = begin + LENGTH.unpack_from(data, at)[0]
            data_json = data[begin : at - 1].decode()
            if at != len(data) or at > MAX_EVENT or not data.startswith(FINGERPRINT):
                return None
            utime, seq = self._head.unpack_from(data, len(FINGERPRINT))
        except (struct.error, ValueError, IndexError):
            return None
        type, module, skill, caller = names
        return utime, self._call_id, seq, type, module, skill, caller, text, data_json

    def _learn_id(self, data: bytes) -> None:
        """Remember the call's id. Raises ``struct.error`` or ``ValueError``."""
        self._call_id, end = _text_at(data, ID_AT)
        self._id, self._names_at = data[ID_AT:end], end + SEQ.size
        self._head = _head_of(len(self._id))

    def _learn_names(self, data: bytes) -> tuple[bytes, _CallNames]:
        """Return the names and their bytes, and remember short ones. Raises ``struct.error`` or ``ValueError``."""
        block = data[self._names_at : _end_of_names(data, self._names_at)]
        known = block, _names(block)
        if len(block) <= _ALIKE_BYTES:
            self._alike[block[LENGTH.size - 1]] = known
        return known


def _unpack(data: bytes) -> _Fields | None:
    """Return the fields of a sound message; None for any other, of which ``_decode`` says what is wrong."""
    if not data.startswith(FINGERPRINT):
        return None
    begin = len(FINGERPRINT) + _UTIME_LENGTH.size
    try:
        utime, length = _UTIME_LENGTH.unpack_from(data, len(FINGERPRINT))
        at = begin + length
        call_id = data[begin : at - 1].decode()
        seq = SEQ.unpack_from(data, at)[0]
        begin = at + SEQ.size
        at = _end_of_names(data, begin)
        type, module, skill, caller = _names(data[begin:at])
        text, at = _text_at(data, at)
        data_json, at = _text_at(data, at)
    except (struct.error, ValueError):
        return None
    if at != len(data):
        return None
    return utime, call_id, seq, type, module, skill, caller, text, data_json


def _event(fields: _Fields, channel: str) -> ToolEvent:
    """Return the event of these fields. Raises ``MessageError`` for what no publisher sends."""
    utime, call_id, seq, type, module, skill, caller, text, data_json = fields
    value = json_object(data_json, channel, TYPE)
    instance = value.pop(INSTANCE, "")
    if not (isinstance(instance, str) and len(instance) <= MAX_NAME and instance.isprintable()):
        raise MessageError(channel, TYPE, f"its instance is {str(instance)[:MAX_NAME]!r}")
    if not 1 <= seq <= last_seq_of(type) or not is_call_id(call_id):
        raise MessageError(channel, TYPE, f"call {call_id!r} has seq {seq}")
    if type == "close" and value.get("outcome") not in OUTCOMES:
        raise MessageError(channel, TYPE, f"outcome is {value.get('outcome')!r}; valid: {', '.join(OUTCOMES)}")
    return ToolEvent(
        utime=utime,
        call_id=call_id,
        seq=seq,
        type=type,  # type: ignore[arg-type]
        module=module,
        skill=skill,
        caller=caller,
        text=text,
        data=value,
        instance=instance,
    )


def _end_of_names(data: bytes, at: int) -> int:
    """Return the index behind the names that begin at an index. Raises ``struct.error``."""
    for _ in _CallNames._fields:
        at += LENGTH.size + LENGTH.unpack_from(data, at)[0]
    return at


def _text_at(data: bytes, at: int) -> tuple[str, int]:
    """Return the string at an index, and the index behind it. Raises ``struct.error`` or ``ValueError``."""
    begin = at + LENGTH.size
    end = begin + LENGTH.unpack_from(data, at)[0]
    return data[begin : end - 1].decode(), end


@functools.lru_cache(maxsize=1024)
def _names(block: bytes) -> _CallNames:
    """Return the names in a part of a message. They are remembered, as they come with every event of a call. Raises
    as ``_text_at`` does, and for names that no publisher sends: such a block may be large, and is not remembered."""
    texts: list[str] = []
    at = 0
    for _ in _CallNames._fields:
        text, at = _text_at(block, at)
        texts.append(text)
    names = _CallNames(*texts)
    if at != len(block) or _bad_name(names.type, names[1:]):
        raise ValueError("not what a publisher sends")
    return names


def _bad_name(type: str, names: Sequence[str]) -> str:
    """Return what is wrong with an event's type and names; empty if nothing is."""
    if type not in EVENT_TYPES:
        return f"type is {type!r}; valid: {', '.join(sorted(EVENT_TYPES))}"
    return fault_of_names(names)


def _decode(data: bytes, channel: str) -> _Fields:
    """Return the fields of any message. Raises ``MessageError``."""
    message = decode(ToolStreamEvent, data, channel=channel)
    if wrong := _bad_name(message.type, (message.module, message.skill, message.caller)):
        raise MessageError(channel, TYPE, wrong)
    fields: _Fields = operator.attrgetter(*_FIELDS)(message)
    return fields
