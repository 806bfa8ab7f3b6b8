"""Messages to bytes and back, checked on both sides; and the names of channels.

lcm-gen's own code corrupts or shortens silently where sizes do not fit. Here whatever is wrong is a
``MessageError`` that names channel, type and field or position.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeVar

from dimos_streams.bus.sizes import MAX_CHANNEL_BYTES
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages import registry
from dimos_streams.messages.base import Field, Message, fields_of
from dimos_streams.messages.plain_classes import class_of

M = TypeVar("M", bound=Message)

_FINGERPRINT_BYTES = 8
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
"""The first bytes of what Python's ``pickle`` writes, for the text of an error: dimos sends such, too."""
_GENERATED_CODE_RAISES = (
    struct.error,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
_PACK = {
    "int8_t": struct.Struct(">b").pack,
    "int16_t": struct.Struct(">h").pack,
    "int32_t": struct.Struct(">i").pack,
    "int64_t": struct.Struct(">q").pack,
    "byte": struct.Struct(">B").pack,
    "float": struct.Struct(">f").pack,
    "double": struct.Struct(">d").pack,
    "boolean": struct.Struct(">b").pack,
    "string": str.encode,
}


def encode(message: Message, channel: str = "") -> bytes:
    """Encode a message; fills in the fields that size its arrays, in the message itself.

    Raises ``MessageError``, naming the field, if a value is of the wrong type or out of range, an array of
    fixed length has another length, or arrays that share a size field differ in length. ``channel`` only goes
    into the error's text.
    """
    try:
        _fill_sizes(message, _plan(type(message)), "")
        writer = BytesIO()
        writer.write(message._get_packed_fingerprint())
        message._encode_one(writer)
        return writer.getvalue()
    except _GENERATED_CODE_RAISES as error:
        why = str(error) if isinstance(error, _SizeError) else _fault(message, "") or repr(error)
        raise MessageError(channel, message.msg_name, why) from error


def decode(cls: type[M], data: bytes, channel: str = "") -> M:
    """Decode exactly one message of class ``cls``.

    Raises ``MessageError`` for bytes of another type, too few or too many of them, negative sizes, and text
    that is not UTF-8; never another exception, whatever the bytes. ``channel`` is for the error's text only.
    """
    if data[:_FINGERPRINT_BYTES] != cls._get_packed_fingerprint():
        raise other_type(cls, data, channel)
    try:
        return _decoded(cls, data)
    except _GENERATED_CODE_RAISES as error:
        raise MessageError(channel, cls.msg_name, str(error)) from error


def other_type(cls: type[Message], data: bytes, channel: str) -> MessageError:
    """The error for bytes whose fingerprint is not that of a class."""
    expected, found = cls._get_packed_fingerprint(), bytes(data[:_FINGERPRINT_BYTES])
    what = "a Python pickle, which is never read" if _PICKLE.match(found) else "another type or definition"
    why = f"its fingerprint is {found.hex() or 'missing'}, not {expected.hex()}: {what}"
    return MessageError(channel, cls.msg_name, why)


def type_named(name: str, channel: str = "") -> type[Message]:
    """The class of a type's name such as ``"geometry_msgs.Twist"``.

    Raises ``MessageError`` if there is none of that name. ``channel`` is for the error's text only.
    """
    found = registry.find(name)
    if found is None:
        raise MessageError(channel, name, f"there is no such message type{registry.hint(name)}")
    return found


def channel_name(topic: str, cls: type[Message]) -> str:
    """The channel of a topic: ``"/cmd_vel"`` and Twist give ``"/cmd_vel#geometry_msgs.Twist"``.

    Raises ``UserError`` if the topic does not begin with a slash, contains ``#``, white space or a NUL, or if
    the channel would be longer than LCM allows.
    """
    if not topic.startswith("/") or any(char in "#\0" or char.isspace() for char in topic):
        raise UserError(f"{topic!r} can't be a topic: it must begin with '/' and have no '#', space or NUL")
    channel = f"{topic}#{cls.msg_name}"
    length = len(channel.encode("utf-8", "surrogatepass"))
    if length > MAX_CHANNEL_BYTES:
        raise UserError(
            f"channel {channel!r} is {length} bytes long, LCM allows {MAX_CHANNEL_BYTES}: "
            f"shorten the topic {topic!r} or its namespace by {length - MAX_CHANNEL_BYTES}"
        )
    return channel


def split_channel(channel: str) -> tuple[str, str]:
    """Topic and type name of a channel; the type name is empty if the channel (a foreign one) has none."""
    topic, _, type_name = channel.partition("#")
    return topic, type_name


class _SizeError(ValueError):
    """Sizes in a message do not fit each other; the text names the field."""


def _decoded(cls: type[M], data: bytes) -> M:
    """Return the message that bytes hold. Raises ``_GENERATED_CODE_RAISES``."""
    try:
        # A type that reads more than there is reads this byte too: where the reader ends shows it.
        reader = BytesIO(b"".join((data, b"\0")))
        reader.seek(_FINGERPRINT_BYTES)
        message = cls._decode_one(reader)
        fits = reader.tell() == len(data)
    except _GENERATED_CODE_RAISES:
        fits = False
    if not fits:
        reader = _StrictReader(data)
        reader.seek(_FINGERPRINT_BYTES)
        message = cls._decode_one(reader)
    _check_sizes(message, _plan(cls), "")
    if not fits:
        raise _SizeError(f"{len(data) - reader.tell()} bytes too many")
    return message


_read = BytesIO.read  # a third faster than super().read


class _StrictReader(BytesIO):
    """A reader that gives exactly what is asked for, or raises: for bytes of which it is known that they don't fit,
    because it costs as much as all the rest."""

    __slots__ = ()

    def read(self, size: int | None = -1, /) -> bytes:
        chunk = _read(self, size)
        if len(chunk) != size:
            if size is None or size < 0:
                raise _SizeError(f"an array's size is negative ({size})")
            raise _SizeError(f"it ends after {self.tell()} bytes, {size - len(chunk)} too early")
        return chunk


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parts of a class that encode and decode look at: its arrays, and the messages inside that have arrays."""

    arrays: tuple[Field, ...]
    nested: tuple[tuple[Field, _Plan], ...]

    def __bool__(self) -> bool:
        return bool(self.arrays or self.nested)


_plans: dict[type[Message], _Plan] = {}


def _plan(cls: type[Message]) -> _Plan:
    known = _plans.get(cls)
    if known is None:
        fields = fields_of(cls)
        nested = ((field, _plan(class_of(field))) for field in fields if field.is_message)
        known = _plans[cls] = _Plan(
            tuple(field for field in fields if field.size is not None),
            tuple((field, plan) for field, plan in nested if plan),
        )
    return known


def _fill_sizes(message: Message, plan: _Plan, path: str) -> None:
    """Set the size fields of a message and of those inside it; check what can't be set."""
    filled: dict[str, int] = {}
    for field in plan.arrays:
        value = getattr(message, field.name)
        if field.type == "byte" and not isinstance(value, (bytes, bytearray)):
            raise _SizeError(f"{path}{field.name}: bytes expected, got {type(value).__name__}")
        length = len(value)
        if isinstance(field.size, int):
            wanted = field.size
        else:
            assert field.size is not None
            wanted = filled.setdefault(field.size, length)
            setattr(message, field.size, length)
        if length != wanted:
            raise _SizeError(f"{path}{field.name}: {length} entries, {wanted} expected ({field.size})")
    _descend(message, plan, path, _fill_sizes)


def _check_sizes(message: Message, plan: _Plan, path: str) -> None:
    """Find the negative sizes that lcm-gen's loops take for zero."""
    for field in plan.arrays:
        if isinstance(field.size, str) and getattr(message, field.size) < 0:
            raise _SizeError(f"{path}{field.size} is negative ({getattr(message, field.size)})")
    _descend(message, plan, path, _check_sizes)


def _descend(message: Message, plan: _Plan, path: str, visit: Any) -> None:
    for field, inner in plan.nested:
        value = getattr(message, field.name)
        if field.size is None:
            visit(value, inner, f"{path}{field.name}.")
        else:
            for index, item in enumerate(value):
                visit(item, inner, f"{path}{field.name}[{index}].")


def _fault(message: Message, path: str) -> str:
    """The value of a message that can't be encoded, and why; empty if each by itself can."""
    for field in fields_of(type(message)):
        where = path + field.name
        try:
            value = getattr(message, field.name)
            items = [(where, value)] if field.size is None else [(f"{where}[{i}]", v) for i, v in enumerate(value)]
        except (AttributeError, TypeError) as error:
            return f"{where}: {error}"
        for item_where, item in items:
            fault = _fault_of_value(item, field, item_where)
            if fault:
                return fault
    return ""


def _fault_of_value(value: Any, field: Field, where: str) -> str:
    if field.is_message:
        if isinstance(value, class_of(field)):
            return _fault(value, where + ".")
        return f"{where}: {field.type} expected, got {value!r}"
    try:
        _PACK[field.type](value)
    except (struct.error, ArithmeticError, TypeError, ValueError) as error:
        return f"{where}: {value!r} is no {field.type}: {error}"
    return ""
