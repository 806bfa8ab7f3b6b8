"""Messages of the bus as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dimos_streams.messages.base import Message, fields_of

_WIDTH = 100
_SHOWN_NUMBERS = 8
_SHOWN_MESSAGES = 20
_SHOWN_CHARACTERS = 2000


def to_lines(message: Message, indent: str = "") -> Iterator[str]:
    """Return a message as indented lines; long arrays are abbreviated."""
    for name, value in _contents(message):
        yield from _lines(name, value, indent)


def _lines(name: str, value: Any, indent: str) -> Iterator[str]:
    flat = _flat(value)
    if flat is not None and len(indent) + len(name) + len(flat) + 2 <= _WIDTH:
        yield f"{indent}{name}: {flat}"
    elif isinstance(value, Message):
        yield f"{indent}{name}:"
        yield from to_lines(value, indent + "  ")
    elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Message):
        yield f"{indent}{name}:"
        for index, item in enumerate(value[:_SHOWN_MESSAGES]):
            yield from _lines(f"[{index}]", item, indent + "  ")
        if len(value) > _SHOWN_MESSAGES:
            yield f"{indent}  ... {len(value)} in all"
    else:
        yield f"{indent}{name}: {flat}"


def _flat(value: Any) -> str | None:
    """Return a value on one line, or None for a list of messages."""
    if isinstance(value, Message):
        parts = [(name, _flat(item)) for name, item in _contents(value)]
        if any(text is None for _, text in parts):
            return None
        return f"{{{', '.join(f'{name}: {text}' for name, text in parts)}}}"
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if isinstance(value, (list, tuple)):
        return _flat_list(value)
    return _scalar(value)


def _flat_list(values: list[Any] | tuple[Any, ...]) -> str | None:
    if values and isinstance(values[0], Message):
        return None
    shown = ", ".join(_scalar(value) for value in values[:_SHOWN_NUMBERS])
    return f"[{shown}]" if len(values) <= _SHOWN_NUMBERS else f"[{shown}, ... {len(values)} in all]"


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}... ({len(value)} characters)"


def _contents(message: Message) -> Iterator[tuple[str, Any]]:
    """Return the fields of a message, without those that only size its arrays."""
    fields = fields_of(type(message))
    sizes = {field.size for field in fields}
    for field in fields:
        if field.name not in sizes:
            yield field.name, getattr(message, field.name)
