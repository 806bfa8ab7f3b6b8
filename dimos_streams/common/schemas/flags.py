"""True and false where a number is wanted: Python, and pydantic with it, takes them for 1 and 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel


def refuse_flags(wanted: Any, value: object, path: str = "") -> None:
    """Raise ``ValueError`` for a true or false in a value, or in the settings in it, where a number is wanted.

    ``wanted`` is the type that a field is declared with; ``path`` leads from the field to the value.
    """
    kinds = list(_kinds(wanted))
    if isinstance(value, bool):
        if (int in kinds or float in kinds) and bool not in kinds and Any not in kinds:
            raise ValueError(f"{path}it must be a number, not {str(value).lower()}")
    elif isinstance(value, Mapping):
        fields = [kind.model_fields for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        for name, item in value.items():
            for each in fields:
                if name in each:
                    refuse_flags(each[name].annotation, item, f"{path}{name}: ")


def _kinds(wanted: Any) -> Iterator[Any]:
    """Yield the types that a union is of, or the type itself."""
    if get_origin(wanted) in (Union, UnionType):
        for each in get_args(wanted):
            yield from _kinds(each)
    elif get_origin(wanted) is Annotated:
        yield from _kinds(get_args(wanted)[0])
    else:
        yield wanted
