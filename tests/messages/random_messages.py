"""Messages of random content, the same for the same seed everywhere, made with nothing but the standard library."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from dimos_streams.messages.base import Field, Message, fields_of
from dimos_streams.messages.codec import type_named

_MOST_ITEMS = 2
_BITS = {"int8_t": 8, "int16_t": 16, "int32_t": 32, "int64_t": 64}


def random_message(name: str, index: int) -> Message:
    """The message number ``index`` of a type. Its numbers are exact in 32 bits, so that equality can be asked for."""
    return _message(type_named(name), random.Random(f"{name} {index}"))


def copied(message: Message, class_named: Callable[[str], Any]) -> Any:
    """The same message of another package's classes, which ``class_named`` finds by type; sizes are filled in."""
    copy = class_named(type(message).msg_name)()
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.is_message:
            value = (
                copied(value, class_named) if field.size is None else [copied(item, class_named) for item in value]
            )
        setattr(copy, field.name, value)
    for field in fields_of(type(message)):
        if isinstance(field.size, str):
            setattr(copy, field.size, len(getattr(message, field.name)))
    return copy


def _message(cls: type[Message], chance: random.Random) -> Message:
    sizes = {field.size: chance.randint(0, _MOST_ITEMS) for field in fields_of(cls) if isinstance(field.size, str)}
    return cls(**{field.name: _value(field, sizes, chance) for field in fields_of(cls) if field.name not in sizes})


def _value(field: Field, sizes: dict[str, int], chance: random.Random) -> object:
    if field.size is None:
        return _scalar(field.type, chance)
    length = field.size if isinstance(field.size, int) else sizes[field.size]
    return chance.randbytes(length) if field.type == "byte" else [_scalar(field.type, chance) for _ in range(length)]


def _scalar(kind: str, chance: random.Random) -> object:
    if "." in kind:
        return _message(type_named(kind), chance)
    if kind in _BITS:
        bound = 1 << (_BITS[kind] - 1)
        return chance.randint(-bound, bound - 1)
    if kind == "string":
        return "".join(chance.choices("aé/日 _", k=chance.randint(0, 4)))
    if kind in ("float", "double"):
        return chance.randint(-8000, 8000) / 8
    return chance.random() < 0.5 if kind == "boolean" else chance.randint(0, 255)
