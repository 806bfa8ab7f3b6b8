"""The base class of what clients send as JSON, which is taken only as it is declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from dimos_streams.common.schemas.frozen_model import FrozenModel


class JsonModel(FrozenModel):
    """Base: a boolean is true or false, and a number a number. Pydantic would also read them from other values, from
    ``"yes"``, 1 or ``"5"``, which the schema refuses. Its strict mode refuses what the schema allows: lists for
    tuples, and 1.0 for a whole number.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _as_declared(cls, given: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        taken = read(given)
        if faults := list(_conversions(given, taken)):
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return taken


def _conversions(given: Any, taken: Any, path: tuple[str | int, ...] = ()) -> Iterator[InitErrorDetails]:
    """Yield an error for each value that was made a boolean or a number, and was none."""
    if given is taken:
        return
    if isinstance(taken, bool):
        if not isinstance(given, bool):
            yield {"type": "bool_type", "loc": path, "input": given}
    elif isinstance(taken, int | float):
        if isinstance(given, bool) or not isinstance(given, int | float):
            yield {"type": "int_type" if isinstance(taken, int) else "float_type", "loc": path, "input": given}
    elif isinstance(given, Mapping) and isinstance(taken, BaseModel | Mapping):
        parts = taken if isinstance(taken, Mapping) else dict(taken)
        for name in filter(parts.__contains__, given):
            yield from _conversions(given[name], parts[name], (*path, name))
    elif isinstance(given, list) and isinstance(taken, list | tuple):
        for index, (part, made) in enumerate(zip(given, taken, strict=False)):
            yield from _conversions(part, made, (*path, index))
