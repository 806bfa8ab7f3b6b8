"""Values of ROS types to bytes and back, as DDS carries them: plain CDR (XCDR version 1).

Whatever does not fit is a ``MessageError`` that names the type and the field or position.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message
from dimos_streams.messages.std_msgs import Header
from dimos_streams.ros2.layout import UNBOUNDED, Primitive, RosField, RosStruct

HEADER = b"\x00\x01\x00\x00"
"""Plain CDR, little-endian: what is written. Both byte orders are read."""
_PADDING = 3
"""The largest number of bytes that may follow the value, because a payload is a whole number of words."""

_FORMATS: dict[Primitive, tuple[str, int]] = {
    "bool": ("?", 1),
    "uint8": ("B", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "uint64": ("Q", 8),
    "float32": ("f", 4),
    "float64": ("d", 8),
}


def encode(struct: RosStruct, value: Message | Mapping[str, Any]) -> bytes:
    """The bytes of a value, encapsulation header included. Raises ``MessageError``."""
    writer = _CdrWriter()
    try:
        writer.struct(struct, value)
    except (packing.error, ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise MessageError("", struct.name, f"{writer.where}: {error}") from error
    return HEADER + bytes(writer.data)


def decode(struct: RosStruct, data: bytes) -> Any:
    """The value of bytes with their encapsulation header: a message, or a dict. Raises ``MessageError``."""
    if len(data) < len(HEADER) or data[0] != 0 or data[1] not in (0, 1):
        raise MessageError("", struct.name, f"it is not plain CDR: it begins with {data[:4].hex() or 'nothing'}")
    reader = _CdrReader(memoryview(data)[len(HEADER) :], "<" if data[1] else ">")
    try:
        value = reader.struct(struct)
    except (packing.error, ValueError) as error:
        raise MessageError("", struct.name, f"{reader.where}: {error}") from error
    left = len(reader.data) - reader.at
    if left > _PADDING:
        raise MessageError("", struct.name, f"{left} bytes too many: its definition is another one there")
    return value


class _CdrWriter:
    """The bytes written so far; alignment counts from the end of the header."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.where = ""
        """The field that is being written."""

    def struct(self, struct: RosStruct, value: Any) -> None:
        named = isinstance(value, Mapping)
        for field in struct.fields:
            self.where = f"{struct.name}.{field.name}"
            self._field(field, value[field.name] if named else getattr(value, field.name))

    def _field(self, field: RosField, value: Any) -> None:
        if field.size is None:
            self._one(field.type, value)
            return
        if field.size == UNBOUNDED:
            self._primitives("uint32", (len(value),))
        elif len(value) != field.size:
            raise ValueError(f"{len(value)} entries, {field.size} expected")
        if isinstance(field.type, RosStruct) or field.type == "string":
            for item in value:
                self._one(field.type, item)
        elif isinstance(value, (bytes, bytearray)) and field.type in ("uint8", "int8"):
            self.data += value
        else:
            self._primitives(field.type, value)

    def _one(self, kind: Primitive | RosStruct, value: Any) -> None:
        if isinstance(kind, RosStruct):
            self.struct(kind, value)
        elif kind == "string":
            encoded = value.encode("utf-8") + b"\0"
            self._primitives("uint32", (len(encoded),))
            self.data += encoded
        else:
            self._primitives(kind, (value,))

    def _primitives(self, kind: Primitive, values: Sequence[Any]) -> None:
        letter, size = _FORMATS[kind]
        if len(values):
            self.data += bytes(-len(self.data) % size)
            self.data += packing.pack(f"<{len(values)}{letter}", *values)


class _CdrReader:
    """A position in bytes; alignment counts from the end of the header."""

    def __init__(self, data: memoryview, order: str) -> None:
        self.data, self._order = data, order
        self.at = 0
        self.where = ""
        """The field that is being read."""

    def struct(self, struct: RosStruct) -> Any:
        values = {}
        for field in struct.fields:
            self.where = f"{struct.name}.{field.name}"
            values[field.name] = self._field(field)
        return values if struct.message is None else _message(struct, struct.message, values)

    def _field(self, field: RosField) -> Any:
        if field.size is None:
            return self._one(field.type)
        count = self._primitives("uint32", 1)[0] if field.size == UNBOUNDED else field.size
        if isinstance(field.type, RosStruct) or field.type == "string":
            if count > len(self.data) - self.at:
                raise ValueError(f"{count} entries in {len(self.data) - self.at} bytes")
            return [self._one(field.type) for _ in range(count)]
        return self._bytes(count) if field.type == "uint8" else self._primitives(field.type, count)

    def _one(self, kind: Primitive | RosStruct) -> Any:
        if isinstance(kind, RosStruct):
            return self.struct(kind)
        if kind == "string":
            text = self._bytes(self._primitives("uint32", 1)[0])
            return text.removesuffix(b"\0").decode("utf-8")
        return self._primitives(kind, 1)[0]

    def _bytes(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise ValueError(f"{count} bytes in {len(self.data) - self.at}")
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def _primitives(self, kind: Primitive, count: int) -> tuple[Any, ...]:
        if not count:
            return ()
        letter, size = _FORMATS[kind]
        begin = self.at + -self.at % size
        if begin + count * size > len(self.data):
            raise ValueError(f"it ends after {len(self.data)} bytes, {begin + count * size} are needed")
        self.at = begin + count * size
        return packing.unpack_from(f"{self._order}{count}{letter}", self.data, begin)


def _message(struct: RosStruct, cls: type[Message], values: dict[str, Any]) -> Message:
    """A message of the values. Its constructor would make defaults, which are whole messages, for nothing."""
    message = cls.__new__(cls)
    for name, value in values.items():
        setattr(message, name, value)
    for size, array in struct.sizes:
        setattr(message, size, len(values[array]))
    if isinstance(message, Header):
        message.seq = 0
    return message
