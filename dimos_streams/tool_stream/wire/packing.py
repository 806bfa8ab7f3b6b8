"""Events as bytes of the bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.writing import json_without_secrets
from dimos_streams.common.readable.surrogates import well_formed
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.event import EVENT_TYPES, EventType, ToolEvent
from dimos_streams.tool_stream.protocol.bounds import MAX_DATA_DEPTH, MAX_PAYLOAD
from dimos_streams.tool_stream.wire.layout import FINGERPRINT, INSTANCE, LENGTH, SEQ, UTIME, instance_ending


class EventPacker:
    """A packer of the events of one call."""

    def __init__(self, call_id: str, module: str, skill: str, caller: str, instance: str) -> None:
        """``instance`` is the start of the module that opens the call: it goes with each event of it."""
        self._instance = f'"{INSTANCE}":'.encode() + instance_ending(instance)[:-1] if instance else b""
        self._call_id = _string(call_id)
        names = _string(module) + _string(skill) + _string(caller)
        self._types = {type: _string(type) + names for type in EVENT_TYPES}

    def pack(self, utime: int, seq: int, type: EventType, text: str, data: Mapping[str, Any]) -> bytes:
        """Return an event's bytes, without secrets that this process knows. Raises ``SkillError`` if the data is not
        JSON or nested too deep, or data and text are too large."""
        if not isinstance(text, str):
            raise SkillError(f"the text of {_one(type)} is {text!r}, which is no str")
        encoded, data_json = _utf8(redacted(text)), _json_of(data, type)
        size = len(encoded) + len(data_json)
        if size > MAX_PAYLOAD:
            raise SkillError(f"text and data of one event are {size} bytes long; {MAX_PAYLOAD} are possible")
        if self._instance:
            data_json = data_json[:-1] + (b"," if data else b"") + self._instance
        return b"".join(
            (
                FINGERPRINT,
                UTIME.pack(utime),
                self._call_id,
                SEQ.pack(seq),
                self._types[type],
                LENGTH.pack(len(encoded) + 1),
                encoded,
                b"\0",
                LENGTH.pack(len(data_json) + 1),
                data_json,
                b"\0",
            )
        )


def pack_event(event: ToolEvent) -> bytes:
    """Return one event's bytes. Raises as ``EventPacker.pack`` does."""
    packer = EventPacker(event.call_id, event.module, event.skill, event.caller, event.instance)
    return packer.pack(event.utime, event.seq, event.type, event.text, event.data)


def _json_of(data: Mapping[str, Any], type: EventType) -> bytes:
    try:
        encoded = json_without_secrets(data)
    except SkillError as error:
        raise SkillError(f"the data of {_one(type)}: {error}") from error
    if is_deeper(encoded, MAX_DATA_DEPTH):
        raise SkillError(f"the data of {_one(type)} is nested more than {MAX_DATA_DEPTH} deep")
    return encoded


def _one(type: EventType) -> str:
    return f"{'an' if type[0] in 'aeiou' else 'a'} {type}"


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()


def _string(text: str) -> bytes:
    encoded = _utf8(text)
    return b"%b%b\0" % (LENGTH.pack(len(encoded) + 1), encoded)
