"""The settings that a config class has, through the models and dataclasses inside it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel


def fields_at(kind: Any, path: Sequence[str]) -> dict[str, Any]:
    """The names and types of the fields found at ``path`` inside ``kind``; empty where there are none to name."""
    fields = _fields(kind)
    for name in path:
        fields = _fields(fields.get(name))
    return fields


def spelled(kind: Any, path: Sequence[str]) -> tuple[str, ...]:
    """A path with the upper and lower case of the fields that it means; parts that mean none stay as they are."""
    found: list[str] = []
    for part in path:
        match = [name for name in fields_at(kind, found) if name.lower() == part.lower()]
        found.append(match[0] if match else part)
    return tuple(found)


def _fields(kind: Any) -> dict[str, Any]:
    for option in _options(kind):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return {name: field.annotation for name, field in option.model_fields.items()}
        if isinstance(option, type) and dataclasses.is_dataclass(option):
            return dict(typing.get_type_hints(option))
    return {}


def _options(kind: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if is_union else (kind,)
