"""Hypothesis strategies for messages, made from the generated classes' own description."""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from dimos_streams.messages.base import Field, Message, fields_of
from dimos_streams.messages.codec import type_named

_INTEGER_BITS = {"int8_t": 8, "int16_t": 16, "int32_t": 32, "int64_t": 64}
_SIZES = st.integers(0, 3)


def messages(cls: type[Message]) -> st.SearchStrategy[Message]:
    """Valid messages of a class; its size fields are left for ``encode`` to fill."""
    return st.composite(_draw_message)(cls)


def _draw_message(draw: st.DrawFn, cls: type[Message]) -> Message:
    names = {field.size for field in fields_of(cls) if isinstance(field.size, str)}
    sizes = {name: draw(_SIZES) for name in sorted(names)}
    values = {field.name: draw(_values(field, sizes)) for field in fields_of(cls) if field.name not in sizes}
    return cls(**values)


def _values(field: Field, sizes: dict[str, int]) -> st.SearchStrategy[object]:
    if field.size is None:
        return _scalars(field.type)
    length = field.size if isinstance(field.size, int) else sizes[field.size]
    if field.type == "byte":
        return st.binary(min_size=length, max_size=length)
    return st.lists(_scalars(field.type), min_size=length, max_size=length)


@functools.cache
def _scalars(type_name: str) -> st.SearchStrategy[object]:
    if "." in type_name:
        return messages(type_named(type_name))
    if type_name in _INTEGER_BITS:
        bound = 1 << (_INTEGER_BITS[type_name] - 1)
        return st.integers(-bound, bound - 1)
    return {
        "byte": st.integers(0, 255),
        "boolean": st.booleans(),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "string": st.text(st.characters(codec="utf-8"), max_size=8),
    }[type_name]
