"""Events as bytes of the bus, written and read without a message object in between: every event goes this way.

The bytes are those of ``messages.dimos_streams.ToolStreamEvent`` in LCM's encoding: big-endian fields in the order of
``lcm_types/dimos_streams/ToolStreamEvent.lcm``, a string as its length with the NUL, its UTF-8 and the NUL. A test
compares both. This takes a third of the general codec's time, and an event waits for it twice.
"""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dimos_streams.common.secrets import redacted
from dimos_streams.common.text import well_formed
from dimos_streams.errors import MessageError, SkillError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.tool_stream.event import (
    EVENT_TYPES,
    EVENTS,
    MAX_EVENT,
    MAX_NAME,
    MAX_PAYLOAD,
    MAX_SEQ,
    OUTCOMES,
    EventType,
    ToolEvent,
    is_call_id,
    is_name,
    json_object,
    json_text,
    json_without_secrets,
)

_TYPE = ToolStreamEvent.msg_name
_FINGERPRINT = ToolStreamEvent._get_packed_fingerprint()
INSTANCE = "_instance"
"""The key, behind those of an event's own data, of the instance that writes its stream."""
_UTIME, _SEQ, _LENGTH = struct.Struct(">q"), struct.Struct(">i"), struct.Struct(">I")
_UTIME_LENGTH = struct.Struct(">qI")


class EventPacker:
    """A packer of the events of one call."""

    def __init__(self, call_id: str, module: str, skill: str, caller: str, instance: str = "") -> None:
        """``instance`` is the start of the module that opens the call: it goes with each event of it."""
        self._instance = instance_ending(instance)[:-1] if instance else b""
        self._call_id = _string(call_id)
        names = _string(module) + _string(skill) + _string(caller)
        self._types = {type: _string(type) + names for type in EVENT_TYPES}

    def pack(self, utime: int, seq: int, type: EventType, text: str, data: Mapping[str, Any]) -> bytes:
        """Return an event's bytes, without secrets that this process knows. Raises ``SkillError`` if the data is not
        JSON, or data and text are too large."""
        if not isinstance(text, str):
            raise SkillError(f"the text of an {type} is {text!r}, which is no str")
        encoded, data_json = _utf8(redacted(text)), _json_of(data, type)
        size = len(encoded) + len(data_json)
        if size > MAX_PAYLOAD:
            raise SkillError(f"text and data of one event are {size} bytes long; {MAX_PAYLOAD} are possible")
        if self._instance:
            data_json = data_json[:-1] + (b"," if data else b"") + self._instance
        return b"".join(
            (
                _FINGERPRINT,
                _UTIME.pack(utime),
                self._call_id,
                _SEQ.pack(seq),
                self._types[type],
                _LENGTH.pack(len(encoded) + 1),
                encoded,
                b"\0",
                _LENGTH.pack(len(data_json) + 1),
                data_json,
                b"\0",
            )
        )


def _json_of(data: Mapping[str, Any], type: EventType) -> bytes:
    try:
        return json_without_secrets(data)
    except SkillError as error:
        raise SkillError(f"the data of an {type}: {error}") from error


@functools.lru_cache(maxsize=1024)
def instance_ending(instance: str) -> bytes:
    """Return the end of the bytes of an instance's events."""
    return f'"{INSTANCE}":{json_text(instance)}}}\0'.encode()


def pack_event(event: ToolEvent) -> bytes:
    """Return one event's bytes. Raises as ``EventPacker.pack`` does."""
    packer = EventPacker(event.call_id, event.module, event.skill, event.caller, event.instance)
    return packer.pack(event.utime, event.seq, event.type, event.text, event.data)


def unpack_event(data: bytes, channel: str = EVENTS) -> ToolEvent:
    """Return the event of a message's bytes. Raises ``MessageError`` for what no publisher sends."""
    if len(data) > MAX_EVENT:
        raise MessageError(channel, _TYPE, f"it has {len(data)} bytes; {MAX_EVENT} are possible")
    return _event(_unpack(data) or _decode(data, channel), channel)


_ALIKE_BYTES = 256
"""Maximum size of an event's names, in bytes, that are remembered; longer ones are read with each event, because many
calls may have made up theirs."""


@functools.lru_cache(maxsize=64)
def _head_of(id_bytes: int) -> struct.Struct:
    """Return the format of time and seq with a call's id in between; thousands of calls have ids of a few lengths."""
    return struct.Struct(f">q{id_bytes}xi")


class EventUnpacker:
    """An unpacker of one call's events: what they have in common with earlier ones is compared, not read again."""

    __slots__ = ("_alike", "_call_id", "_head", "_id", "_names_at")

    def __init__(self) -> None:
        self._call_id, self._id, self._names_at = "", b"", 0
        self._head = _UTIME
        """The format of time and seq, with the call's id in between."""
        self._alike: dict[int, tuple[bytes, _CallNames]] = {}
        """Names and their bytes, by the last byte of the length of the type: no two types have that in common."""

    def unpack(self, data: bytes, channel: str = EVENTS) -> ToolEvent:
        """Return what ``unpack_event`` does, whatever call the event is of."""
        fields = self._fields(data)
        return unpack_event(data, channel) if fields is None else _event(fields, channel)

    def _fields(self, data: bytes) -> _Fields | None:
        try:
            if not self._id or not data.startswith(self._id, _ID_AT):
                self._learn_id(data)
            at = self._names_at
            block, names = self._alike.get(data[at + _LENGTH.size - 1], _UNKNOWN)
            if not block or not data.startswith(block, at):
                block, names = self._learn_names(data)
            at += len(block)
            begin = at + _LENGTH.size
            at = begin + _LENGTH.unpack_from(data, at)[0]
            text = data[begin : at - 1].decode()
            begin = at + _LENGTH.size
            at = begin + _LENGTH.unpack_from(data, at)[0]
            data_json = data[begin : at - 1].decode()
            if at != len(data) or at > MAX_EVENT or not data.startswith(_FINGERPRINT):
                return None
            utime, seq = self._head.unpack_from(data, len(_FINGERPRINT))
        except (struct.error, ValueError, IndexError):
            return None
        type, module, skill, caller = names
        return utime, self._call_id, seq, type, module, skill, caller, text, data_json

    def _learn_id(self, data: bytes) -> None:
        """Remember the call's id. Raises ``struct.error`` or ``ValueError``."""
        self._call_id, end = _text_at(data, _ID_AT)
        self._id, self._names_at, self._alike = data[_ID_AT:end], end + _SEQ.size, {}
        self._head = _head_of(len(self._id))

    def _learn_names(self, data: bytes) -> tuple[bytes, _CallNames]:
        """Return the names and their bytes, and remember short ones. Raises ``struct.error`` or ``ValueError``."""
        block = data[self._names_at : _end_of_names(data, self._names_at)]
        known = block, _names(block)
        if len(block) <= _ALIKE_BYTES:
            self._alike[block[_LENGTH.size - 1]] = known
        return known


def call_id_of(data: bytes) -> str:
    """Return the call id in an event's bytes, without reading the rest; empty if it can't be read."""
    if not data.startswith(_FINGERPRINT) or len(data) > MAX_EVENT:
        return ""
    at = len(_FINGERPRINT) + _UTIME.size
    try:
        end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0] - 1
        return data[at + _LENGTH.size : end].decode() if end < len(data) else ""
    except (struct.error, UnicodeDecodeError):
        return ""


def may_be_of(data: bytes, instance: str) -> bool:
    """Return whether an event's bytes may be of an instance, which a publisher writes at their end; it is only
    certain when all of them are read. True for an empty instance, which is nobody in particular."""
    return not instance or data.endswith(instance_ending(instance))


_ID_AT = len(_FINGERPRINT) + _UTIME.size
_Fields = tuple[int, str, int, str, str, str, str, str, str]
_FIELDS = ("utime", "call_id", "seq", "type", "module", "skill", "caller", "text", "data_json")


class _CallNames(NamedTuple):
    """The fields that most events of a call have in common."""

    type: str
    module: str
    skill: str
    caller: str


_UNKNOWN = b"", _CallNames("", "", "", "")


def _unpack(data: bytes) -> _Fields | None:
    """Return the fields of a sound message; None for any other, of which ``_decode`` says what is wrong."""
    if not data.startswith(_FINGERPRINT):
        return None
    begin = len(_FINGERPRINT) + _UTIME_LENGTH.size
    try:
        utime, length = _UTIME_LENGTH.unpack_from(data, len(_FINGERPRINT))
        at = begin + length
        call_id = data[begin : at - 1].decode()
        seq = _SEQ.unpack_from(data, at)[0]
        begin = at + _SEQ.size
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
    value = json_object(data_json, channel, _TYPE)
    instance = value.pop(INSTANCE, "")
    if not isinstance(instance, str) or not is_name(instance):
        raise MessageError(channel, _TYPE, f"its instance is {str(instance)[:MAX_NAME]!r}")
    if not 1 <= seq <= MAX_SEQ or not is_call_id(call_id):
        raise MessageError(channel, _TYPE, f"call {call_id!r} has seq {seq}")
    if type == "close" and value.get("outcome") not in OUTCOMES:
        raise MessageError(channel, _TYPE, f"outcome is {value.get('outcome')!r}")
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
        at += _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
    return at


def _text_at(data: bytes, at: int) -> tuple[str, int]:
    """Return the string at an index, and the index behind it. Raises ``struct.error`` or ``ValueError``."""
    begin = at + _LENGTH.size
    end = begin + _LENGTH.unpack_from(data, at)[0]
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
        return f"type is {type!r}"
    return "" if all(map(is_name, names)) else "a name is too long, or not printable"


def _decode(data: bytes, channel: str) -> _Fields:
    """Return the fields of any message. Raises ``MessageError``."""
    message = decode(ToolStreamEvent, data, channel=channel)
    if wrong := _bad_name(message.type, (message.module, message.skill, message.caller)):
        raise MessageError(channel, _TYPE, wrong)
    fields: _Fields = operator.attrgetter(*_FIELDS)(message)
    return fields


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()


def _string(text: str) -> bytes:
    encoded = _utf8(text)
    return b"%b%b\0" % (_LENGTH.pack(len(encoded) + 1), encoded)
