"""The common base of all generated message classes."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from dimos_streams.errors import suggest

if TYPE_CHECKING:
    from io import BytesIO
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = Sequence[float] | NDArray[np.floating[Any] | np.integer[Any]]
    IntArray: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]

_SHOWN_ITEMS = 8
_SHOWN_BYTES = 16


class LcmStruct(Protocol):
    """An instance of any class that lcm-gen has written."""

    def encode(self) -> bytes:
        """Its bytes on the wire."""

    def get_hash(self) -> int:
        """The fingerprint of its type."""


class Message:
    """A message of the bus: plain mutable fields, set by keyword or later.

    Messages are equal if they have the same class and fields; fields that only size an array do not count,
    since ``codec.encode`` fills them in. An array of numbers may be any sequence of them or a one-dimensional
    numpy array; a decoded message has tuples.
    """

    __slots__ = ()
    __typenames__: ClassVar[list[str]]
    __dimensions__: ClassVar[list[list[int | str] | None]]
    msg_name: ClassVar[str]
    """The name on the wire, as in ``"geometry_msgs.Twist"``."""
    _layout: ClassVar[tuple[Field, ...]]
    _content: ClassVar[tuple[Field, ...]]
    _names: ClassVar[frozenset[str]]

    if TYPE_CHECKING:

        def get_hash(self) -> int:
            """The fingerprint as a number."""

        @classmethod
        def decode(cls, data: bytes) -> Self:
            """Raw lcm-gen decoding, unchecked; ``codec.decode`` is the safe one."""

        def _encode_one(self, buf: BytesIO) -> None: ...

        @classmethod
        def _decode_one(cls, buf: BytesIO) -> Self: ...

        @classmethod
        def _get_packed_fingerprint(cls) -> bytes: ...

    def __init_subclass__(cls) -> None:
        slots: list[str] = vars(vars(cls).get("_plain", cls))["__slots__"]  # see ``plain_classes``
        rows = zip(slots, cls.__typenames__, cls.__dimensions__, strict=True)
        cls._layout = tuple(field_from_lcm(*row) for row in rows)
        cls._names = frozenset(slots)
        sizes = {field.size for field in cls._layout}
        cls._content = tuple(field for field in cls._layout if field.name not in sizes)

    def encode(self) -> bytes:
        """Encode as ``codec.encode`` does, which sets the sizes of arrays. In a class that plain lcm-gen has written
        it is that class's own method, unchecked.

        Raises ``MessageError`` as ``codec.encode`` does.
        """
        from dimos_streams.messages.codec import encode  # which needs this module

        return encode(self)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _comparable(getattr(self, field.name)) == _comparable(getattr(other, field.name))
            for field in self._content
        )

    def __repr__(self) -> str:
        shown = (f"{field.name}={_abbreviated(getattr(self, field.name))}" for field in self._content)
        return f"{type(self).__name__}({', '.join(shown)})"

    def _assign(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if name not in self._names:
                names = [field.name for field in self._layout]
                near = suggest(name, names)
                raise TypeError(f"{self.msg_name} has no field {name!r}{near} (fields: {', '.join(names) or 'none'})")
            setattr(self, name, value)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message class.

    ``type`` is LCM's name of a primitive ("double", "string") or a message ("std_msgs.Header").
    ``size`` is an array's fixed length or the name of the field that has its length; None for a single value.
    ``path`` is where Python has the class of a message ("dimos_streams.messages.std_msgs.Header").
    """

    name: str
    type: str
    size: int | str | None
    path: str = ""

    @property
    def is_message(self) -> bool:
        return "." in self.type


def field_from_lcm(name: str, typename: str, dimensions: Sequence[int | str] | None) -> Field:
    """Return a field as lcm-gen describes it. Arrays have one dimension; whoever takes classes in checks that."""
    size = dimensions[0] if dimensions else None
    if "." not in typename:
        return Field(name, typename, size)
    return Field(name, wire_name(typename), size, typename)


def wire_name(path: str) -> str:
    """Return the name on the wire of what Python has at a path: the last two parts, as lcm-gen lays packages out."""
    return ".".join(path.split(".")[-2:])


def fields_of(cls: type[Message]) -> tuple[Field, ...]:
    """Return all fields in the order of the wire, sizes of arrays included."""
    return cls._layout


def content_of(cls: type[Message]) -> tuple[Field, ...]:
    """Return the fields in the order of the wire, without those that only size its arrays."""
    return cls._content


def to_json_value(value: Any) -> Any:
    """A message as plain data, complete but for the fields that only size its arrays: bytes in base64, numbers that
    JSON does not have as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Message):
        return {field.name: to_json_value(getattr(value, field.name)) for field in value._content}
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else value


def _comparable(value: Any) -> Any:
    """Arrays as lists, so that list, tuple and numpy array of the same numbers are equal."""
    return value if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") else list(value)


def _abbreviated(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return repr(bytes(value)) if len(value) <= _SHOWN_BYTES else f"<{len(value)} bytes>"
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return repr(value)
    items = list(value)
    if len(items) <= _SHOWN_ITEMS:
        return repr(items)
    return f"[{', '.join(map(repr, items[:3]))}, ... {len(items)} in all]"
