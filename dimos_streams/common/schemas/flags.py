"""True and false where a number is wanted: Python, and pydantic with it, takes them for 1 and 0."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, NewType, Union, get_args, get_origin

from pydantic import BaseModel

_WITHOUT = frozenset({str, int, float, type(None)})
"""Types whose values are no flags and have none in them."""


def refuse_flags(wanted: Any, value: object, path: str = "") -> None:
    """Raise ``ValueError`` for a true or false in a value, or in the settings in it, where a number is wanted.

    ``wanted`` is the type that a field is declared with; ``path`` leads from the field to the value.
    """
    if type(value) in _WITHOUT:  # nearly all are
        return
    kinds = list(_kinds(wanted))
    if isinstance(value, bool):
        if (int in kinds or float in kinds) and bool not in kinds and Any not in kinds:
            raise ValueError(f"{path}it must be a number, not {str(value).lower()}")
    else:
        for kind in kinds:
            for part, item, name in _parts(kind, value):
                refuse_flags(part, item, f"{path}{name}: ")


def _parts(kind: Any, value: object) -> Iterator[tuple[Any, object, object]]:
    """Yield what a value consists of: the type that is wanted of each part, the part, and its name or number."""
    inner = get_args(kind)
    if isinstance(value, Mapping) and isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if name in value:
                yield field.annotation, value[name], name
    elif isinstance(value, Mapping) and inner:
        for name, item in value.items():
            yield inner[-1], item, name
    elif isinstance(value, list | tuple) and inner:
        each = itertools.repeat(inner[0]) if len(inner) == 1 or inner[-1] is Ellipsis else inner
        yield from zip(each, value, itertools.count())


def _kinds(wanted: Any) -> Iterator[Any]:
    """Yield the types that a union is of, or the type itself."""
    if get_origin(wanted) in (Union, UnionType):
        for each in get_args(wanted):
            yield from _kinds(each)
    elif get_origin(wanted) is Annotated:
        yield from _kinds(get_args(wanted)[0])
    elif isinstance(wanted, NewType):
        yield from _kinds(wanted.__supertype__)
    else:
        yield wanted
